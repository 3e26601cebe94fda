import type { k8s } from "cdk8s-plus-27";
import { NodePath } from "../cni/contract";
import { PLUGIN_TYPE } from "../cni/stanza";
import {
  assert,
  concat,
  type Input,
  items,
  matches,
  not,
  or,
  present,
  type Refs,
  type Templated,
  when,
} from "../helm/index";
import type { Values } from "./props";
import { DIGEST, LINKERDS_IMAGE, LINKERDS_IMAGE_WRONG } from "./value-groups";

/** The executable in the image: the plugin, and every other program. */
export const EXECUTABLE = `${NodePath.binDir}/${PLUGIN_TYPE}`;

/**
 * Runs a program of the executable. `install` is the image's entry point, and its container names it all the same: an
 * image that is not ours, such as linkerd's own under another name, then fails at once instead of installing its plugin
 * by our ConfigMap.
 */
export const programCommand = (name: "install" | "repair" | "nri" | "multus" | "validate"): readonly string[] => [
  EXECUTABLE,
  name,
];

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
