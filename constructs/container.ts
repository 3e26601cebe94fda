import type { k8s } from "cdk8s-plus-27";
import { NodePath, NRI_NAME } from "../cni/contract";
import { assert, concat, type Input, items, matches, not, or, present, type Refs, type Templated, when } from "./helm";
import type { Values } from "./props";
import { DIGEST, LINKERDS_IMAGE, LINKERDS_IMAGE_WRONG } from "./value-groups";

/** The JavaScript runtime in the image. The image's environment gives it its options. */
export const RUNTIME = "/opt/linkerd-cni/bun";
/** The programs in the image that the runtime runs. */
export const INSTALLER = "/opt/linkerd-cni/installer.js";
export const CONTROLLERS = "/opt/linkerd-cni/controllers.js";
/** Directory in the image of the programs on the plugin's engine, which need no runtime. */
const EXECUTABLES = NodePath.binDir;

/**
 * Runs the installer. It is the image's entry point, and the container names it all the same: an image that is not
 * ours, such as linkerd's own under another name, then fails at once instead of installing its plugin by our ConfigMap.
 */
export const installerCommand: readonly string[] = [RUNTIME, INSTALLER];

/** Runs the NRI plugin. */
export const nriCommand: readonly string[] = [`${EXECUTABLES}/${NRI_NAME}`];

/** Runs one of the controllers. */
export const controllerCommand = (name: string): readonly string[] => [RUNTIME, CONTROLLERS, name];

/**
 * A variable with what a field of the pod says. The API server fills in the version, and takes the reference as a whole:
 * without it, whoever applies the same manifest server-side would conflict with whoever did so before.
 */
export const fromField = (name: string, fieldPath: string) => ({
  name,
  valueFrom: { fieldRef: { apiVersion: "v1", fieldPath } },
});

/** The variables that users add to a container. */
export function extraEnvOf({ extraEnv }: Pick<Refs<Values>, "extraEnv">): readonly Templated<k8s.EnvVar>[] {
  const given = present(extraEnv);
  return (given === undefined ? [] : items(given)) as readonly Templated<k8s.EnvVar>[];
}

/** How a container asks for what it needs; what is empty is left out. */
export function resourcesOf({ cpu, memory, "ephemeral-storage": storage }: Refs<Values>["resources"]) {
  const limited = or(cpu.limit, memory.limit, storage.limit);
  const requested = or(cpu.request, memory.request, storage.request);
  return when(or(limited, requested), {
    limits: when(limited, {
      cpu: present(cpu.limit),
      memory: present(memory.limit),
      "ephemeral-storage": present(storage.limit),
    }),
    requests: when(requested, {
      cpu: present(cpu.request),
      memory: present(memory.request),
      "ephemeral-storage": present(storage.request),
    }),
  });
}

/** The image of a container: by its digest if there is one, else by its tag. */
export const imageOf = ({ image: { name, version, digest, pullPolicy } }: Pick<Refs<Values>, "image">) => ({
  image: assert(
    not(matches(name, LINKERDS_IMAGE.pattern)),
    concat('image.name: "', name, `" ${LINKERDS_IMAGE_WRONG}`),
    assert(
      matches(digest, DIGEST.pattern),
      concat('image.digest: "', digest, `" ${DIGEST.wrong}`),
      when(digest, concat(name, "@", digest), concat(name, ":", version)) as Input<string>,
    ),
  ),
  imagePullPolicy: pullPolicy,
});
