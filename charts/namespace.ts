/** The commands that make a namespace with labels: helm gives it none, and pods need them from the first one on. */
export function makeNamespace(name: string, labels: Readonly<Record<string, string>>): string {
  return `kubectl create namespace ${name}\n${labelNamespace(name, labels)}`;
}

/** The command that labels a namespace. */
export function labelNamespace(name: string, labels: Readonly<Record<string, string>>): string {
  const assignments = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return `kubectl label namespace ${name} ${assignments.join(" ")}`;
}
