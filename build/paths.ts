import { join } from "node:path";

/** The project's root. */
export const root = join(__dirname, "..");
/** What speeds the next build up, and may go at any time. */
export const cache = join(root, ".cache");
const dist = join(root, "dist");

/** What `npm run build` writes. */
export const outputs = {
  plugin: join(dist, "bin", "linkerd-cni"),
  cli: join(dist, "bin", "l5d-cni"),
  charts: join(dist, "charts"),
  manifests: join(dist, "manifests"),
  image: join(dist, "image", "linkerd-cni.oci.tar"),
} as const;
