/** Multus reads a value with one of these characters as JSON. */
const JSON_MARK = /[[{"]/;
/** White space as Multus trims it, which String.trim does not. */
const WHITE_SPACE = /\p{White_Space}/gu;

/** Names that select one network from a pod's namespace. */
interface Wanted {
  readonly network: string;
  readonly podNamespace: string;
}

/** `NAMESPACE/NAME@INTERFACE`, of which only the name is required. */
function isInList(value: string, { network, podNamespace }: Wanted): boolean {
  const names = [network, `/${network}`, `${podNamespace}/${network}`];
  return value.split(",").some((item) => names.includes((item.split("@")[0] ?? "").replace(WHITE_SPACE, "")));
}

function parseList(value: string): readonly unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(value);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Whether an element of the JSON form selects the network. Multus reads the names of members in any case. */
function selects(element: unknown, { network, podNamespace }: Wanted): boolean {
  if (typeof element !== "object" || element === null) return false;
  const members = Object.entries(element).filter(([, value]) => value !== null);
  const { name, namespace = "" } = Object.fromEntries(members.map(([key, value]) => [key.toLowerCase(), value]));
  return name === network && (namespace === "" || namespace === podNamespace);
}

/**
 * Appends a network of the pod's namespace to the annotation's value, in the value's form. The existing value stays
 * byte for byte, and Multus judges whether it is valid. @returns the same value if it contains the network; undefined if
 * it is neither a list of names nor a JSON array
 */
export function withNetwork(value: string, network: string, podNamespace: string): string | undefined {
  const wanted = { network, podNamespace };
  if (value.replace(WHITE_SPACE, "") === "") return network;
  if (!JSON_MARK.test(value)) return isInList(value, wanted) ? value : `${value},${network}`;
  const elements = parseList(value);
  if (elements === undefined) return undefined;
  if (elements.some((element) => selects(element, wanted))) return value;
  const end = value.lastIndexOf("]");
  const comma = elements.length === 0 ? "" : ",";
  return `${value.slice(0, end).trimEnd()}${comma}${JSON.stringify({ name: network })}${value.slice(end)}`;
}
