import type { k8s } from "cdk8s-plus-27";
import { AdminPath, CONFIG_MAP, NodePath } from "../cni/contract";
import { PLUGIN_TYPE } from "../cni/stanza";
import {
  assert,
  concat,
  ge,
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
import { DIGEST, LINKERDS_IMAGE, LINKERDS_IMAGE_WRONG } from "./value-groups";
import type { Values } from "./values";

/** The executable in the image, with the plugin and all other programs. */
export const EXECUTABLE = `${NodePath.binDir}/${PLUGIN_TYPE}`;

/**
 * Runs a program of the executable. The container names `install` although it is the image's entry point: a foreign
 * image, such as linkerd's under another name, then fails at once instead of installing its plugin with our ConfigMap.
 */
export const programCommand = (name: "install" | "repair" | "nri" | "multus" | "validate"): readonly string[] => [
  EXECUTABLE,
  name,
];

/**
 * A variable with a field of the pod. The API server defaults the version and owns the reference as a whole: without
 * it, two clients that apply the same manifest server-side would conflict.
 */
export const fromField = (name: string, fieldPath: string) => ({
  name,
  valueFrom: { fieldRef: { apiVersion: "v1", fieldPath } },
});

/** Whether a port is enabled: 0 means disabled. */
export const isServed = (port: Input<number>): Input<boolean> => ge(port, 1);

/** A variable from the ConfigMap of the chart. */
export const configured = (variable: string, key: string) => ({
  name: variable,
  valueFrom: { configMapKeyRef: { name: CONFIG_MAP, key } },
});

/** The security context of a container that needs nothing of its node. */
export const RESTRICTED = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  readOnlyRootFilesystem: true,
  seccompProfile: { type: "RuntimeDefault" },
} as const;

/** The probes of a program. @param paths by default those of the admin server */
export const probesOf = (
  port: Input<number> | string,
  { live, ready }: { readonly live: string; readonly ready: string } = AdminPath,
) => ({
  livenessProbe: {
    httpGet: { path: live, port },
    initialDelaySeconds: 10,
    periodSeconds: 10,
    timeoutSeconds: 3,
  },
  readinessProbe: {
    httpGet: { path: ready, port },
    periodSeconds: 5,
    timeoutSeconds: 3,
  },
});

/** Variables that users add to a container. */
export function extraEnvOf({ extraEnv }: Pick<Refs<Values>, "extraEnv">): readonly Templated<k8s.EnvVar>[] {
  const given = present(extraEnv);
  return (given === undefined ? [] : items(given)) as readonly Templated<k8s.EnvVar>[];
}

/** A container's resource requests and limits; empty ones are left out. */
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

/** The image of a container, by digest if one is given, else by tag. */
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
