import { join } from "node:path";

/** The project's root. */
export const root = join(__dirname, "..");
/** The cache, which speeds up the next build and may be deleted at any time. */
export const cache = join(root, ".cache");
const dist = join(root, "dist");

/** The outputs of `npm run build`. */
export const outputs = {
  plugin: join(dist, "bin", "linkerd-cni"),
  cli: join(dist, "bin", "l5d-cni"),
  charts: join(dist, "charts"),
  manifests: join(dist, "manifests"),
  image: join(dist, "image", "linkerd-cni.oci.tar"),
} as const;
