import { concat, or, present, type Refs, when } from "./helm";
import type { Values } from "./values";

/** Where the image has its executable and programs. */
const EXECUTABLE = "/opt/cni/bin/linkerd-cni";
const CONTROLLERS = "/opt/linkerd-cni/controllers.js";

/** What runs one of the controllers. `--smol`: collect garbage early, as the installer does. */
export const controllerCommand = (name: string): readonly string[] => [EXECUTABLE, "--smol", CONTROLLERS, name];

/** A variable with what a field of the pod says. */
export const fromField = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });

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

/** The image of a container. */
export const imageOf = ({ image }: Pick<Refs<Values>, "image">) => ({
  image: concat(image.name, ":", image.version),
  imagePullPolicy: image.pullPolicy,
});
