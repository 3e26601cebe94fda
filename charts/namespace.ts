/** The commands that create a namespace with labels. Helm sets none, and the first pod already needs them. */
export function makeNamespace(name: string, labels: Readonly<Record<string, string>>): string {
  return `kubectl create namespace ${name}\n${labelNamespace(name, labels)}`;
}

/** The command that labels a namespace. */
export function labelNamespace(name: string, labels: Readonly<Record<string, string>>): string {
  const assignments = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return `kubectl label namespace ${name} ${assignments.join(" ")}`;
}
