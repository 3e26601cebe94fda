import { NetworksError, quote, readSelections, type Selection } from "./network-selections";

/** The pod annotation in which Multus reads what to attach besides the default network. */
export const NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks";

/** What all annotations of a pod may hold together: a larger value is refused later, and need not be read. */
const LARGEST = 262_144;

/** Multus' own white space, which is Unicode's, and not that of String.trim. */
const WHITE_SPACE = /\p{White_Space}/u;

/** Looks at each character once: one expression for both ends takes hours for a long run of spaces in between. */
function trim(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && WHITE_SPACE.test(text.charAt(start))) start += 1;
  while (end > start && WHITE_SPACE.test(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LONGEST_INTERFACE = 15;
const UNFIT_FOR_INTERFACE = /[ \t\n\v\f\r/]/;
/** Multus takes a value with one of these for JSON. */
const JSON_MARK = /[[{"]/;

function checkName(name: string, item: string): void {
  if (name !== "" && !NAME.test(name)) {
    throw new NetworksError(`${item}: ${quote(name)} is not a name of lower-case letters, digits and "-"`);
  }
}

function checkInterface(name: string, item: string): void {
  if (Buffer.byteLength(name) > LONGEST_INTERFACE || UNFIT_FOR_INTERFACE.test(name)) {
    throw new NetworksError(`${item}: ${quote(name)} is not an interface's name of at most 15 bytes`);
  }
}

/** Splits in at most two, the first being absent where there is no separator. */
function halves(text: string, separator: string, item: string): readonly string[] {
  const parts = text.split(separator);
  if (parts.length > 2) throw new NetworksError(`${item} has more than one "${separator}"`);
  return parts;
}

/** `NAMESPACE/NAME@INTERFACE`, of which only the name is required. */
function readItem(text: string): Selection {
  const item = `item ${quote(text)}`;
  const path = halves(text, "/", item);
  const namespace = path.length === 2 ? trim(path[0] ?? "") : "";
  const [name = "", wanted = ""] = halves(path.at(-1) ?? "", "@", item).map(trim);
  checkName(namespace, item);
  checkName(name, item);
  checkInterface(wanted, item);
  return { name, namespace };
}

function read(text: string): readonly Selection[] {
  const selections = JSON_MARK.test(text) ? readSelections(text) : text.split(",").map((item) => readItem(trim(item)));
  const nameless = selections.findIndex(({ name }) => name === "");
  // Multus' parser lets it pass, and the attachment then fails.
  if (nameless >= 0) throw new NetworksError(`item ${nameless + 1} names no network`);
  return selections;
}

/** Appends in the value's own form; what stands there stays as it is, so that no number is rounded. */
function append(text: string, network: string, first: boolean): string {
  if (!JSON_MARK.test(text)) return `${trim(text)},${network}`;
  const end = text.lastIndexOf("]");
  return `${text.slice(0, end).trimEnd()}${first ? "" : ","}${JSON.stringify({ name: network })}${text.slice(end)}`;
}

/**
 * The annotation's value with a network of the pod's own namespace added; the value itself where the network is there.
 * @throws NetworksError where Multus would not start a pod with this value
 */
export function withNetwork(value: string, network: string, podNamespace: string): string {
  if (value.length > LARGEST) throw new NetworksError(`is longer than the ${LARGEST} bytes that annotations may have`);
  if (trim(value) === "") return network;
  const selections = read(value);
  const here = ({ name, namespace }: Selection) => name === network && (namespace === "" || namespace === podNamespace);
  return selections.some(here) ? value : append(value, network, selections.length === 0);
}
