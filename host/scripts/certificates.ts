/**
 * Checks of a certificate chain that the TLS library lacks: name constraints on DNS names and addresses, and critical
 * extensions (RFC 5280). A separate script, since few chains need it.
 */
import { quoted } from "../../cni/errors";
import { formatAddress } from "../../cni/subnets";
import { asciiText } from "../bytes";
import { type Element, elements, inside, malformed } from "../der";
import { Extension, extensionsOf } from "../x509";

/** Critical extensions that the TLS library checks, or this script, or that are safe to ignore. */
const SUPPORTED: readonly string[] = [
  Extension.subjectKeyId,
  Extension.keyUsage,
  Extension.alternativeNames,
  Extension.basicConstraints,
  Extension.nameConstraints,
  Extension.revocationLists,
  Extension.policies,
  Extension.authorityKeyId,
  Extension.purposes,
];

interface Certificate {
  /** The list of alternative names. */
  readonly names?: Uint8Array | undefined;
  readonly constraints?: Constraints | undefined;
}

function certificateOf(der: Uint8Array): Certificate {
  const extensions = extensionsOf(der);
  const found = (id: string) => extensions.find((each) => each.id === id);
  for (const { id, isCritical } of extensions) {
    if (extensions.filter((each) => each.id === id).length > 1)
      throw new Error(`a certificate has extension ${id} twice`);
    if (!isCritical || SUPPORTED.includes(id)) continue;
    const name = Object.entries(Extension).find(([, known]) => known === id)?.[0] ?? id;
    throw new Error(`critical extension ${name} of a certificate is not supported`);
  }
  const constraints = found(Extension.nameConstraints);
  return {
    names: found(Extension.alternativeNames)?.value,
    constraints: constraints && constraintsIn(constraints.value, constraints.isCritical),
  };
}

interface Names {
  readonly dns: readonly string[];
  readonly ip: readonly Uint8Array[];
  /** The tags of names of other kinds. */
  readonly others: readonly number[];
}

/** Tags of names (RFC 5280, section 4.2.1.6). */
const Name = { email: 0x81, dns: 0x82, uri: 0x86, ip: 0x87 } as const;
const OTHER_NAMES: Readonly<Record<number, string>> = { [Name.email]: "e-mail addresses", [Name.uri]: "URIs" };

/** Labels of visible characters, none of them empty; a constraint may begin with a dot. */
const DOMAIN = /^(?:\.?[!--/-~]+(?:\.[!--/-~]+)*)?$/;

function domainOf(bytes: Uint8Array): string {
  const text = asciiText(bytes).toLowerCase();
  return text.length === bytes.length && DOMAIN.test(text) ? text : malformed("a certificate's DNS name");
}

function sorted(names: readonly Element[]): Names {
  const bodies = (kind: number) => names.filter(({ tag }) => tag === kind).map(({ body }) => body);
  const tags = names.map(({ tag }) => tag);
  return {
    dns: bodies(Name.dns).map(domainOf),
    ip: bodies(Name.ip),
    others: tags.filter((tag) => tag !== Name.dns && tag !== Name.ip),
  };
}

interface Constraints {
  readonly permitted: Names;
  readonly excluded: Names;
}

function constraintsIn(value: Uint8Array, isCritical: boolean): Constraints {
  const what = "a certificate's list of name constraints";
  const lists = inside(value, what);
  const tags = lists.map(({ tag }) => tag);
  // Each at most once, in this order: of two lists of a kind, one would say nothing.
  if (![[0xa0], [0xa1], [0xa0, 0xa1]].some((each) => `${each}` === `${tags}`)) malformed(what);
  if (lists.every(({ body }) => body.length === 0)) malformed(what);
  const subtrees = (tag: number) => {
    const list = lists.find((each) => each.tag === tag)?.body ?? new Uint8Array(0);
    const found = sorted(elements(list, what).map(({ whole }) => inside(whole, what)[0] ?? malformed(what)));
    if (isCritical && found.others.some((kind) => OTHER_NAMES[kind] === undefined))
      throw new Error("a critical name constraint is of a kind that is not supported");
    for (const network of found.ip) if (!isNetwork(network)) malformed(what);
    return found;
  };
  return { permitted: subtrees(0xa0), excluded: subtrees(0xa1) };
}

/** A subtree contains the name itself and all subdomains; one that begins with a dot, only subdomains. */
function isBelow(subtree: string, name: string): boolean {
  if (subtree === "") return true;
  if (!name.endsWith(subtree)) return false;
  return name.length === subtree.length || subtree.startsWith(".") || name.at(-subtree.length - 1) === ".";
}

const withoutFirst = (name: string) => (name.includes(".") ? name.slice(name.indexOf(".")) : "");

/** Whether an excluded subtree contains a name, or a name that this wildcard stands for. */
function isExcluded(subtree: string, name: string): boolean {
  const parent = withoutFirst(subtree);
  return isBelow(subtree, name) || (name.startsWith("*") && parent !== "" && parent === withoutFirst(name));
}

/** Address and mask of the same length, the mask's ones before its zeros. */
function isNetwork(network: Uint8Array): boolean {
  const bits = Array.from(network.subarray(network.length / 2), (byte) => byte.toString(2).padStart(8, "0"));
  return (network.length === 8 || network.length === 32) && /^1*0*$/.test(bits.join(""));
}

function isWithin(network: Uint8Array, address: Uint8Array): boolean {
  const size = network.length / 2;
  const [base, mask] = [network.subarray(0, size), network.subarray(size)];
  return size === address.length && address.every((byte, at) => ((byte ^ (base[at] ?? 0)) & (mask[at] ?? 0)) === 0);
}

/** Every name must be allowed, not only the requested one. */
function checkNames(names: Names, { permitted, excluded }: Constraints): void {
  for (const kind of names.others)
    if (permitted.others.includes(kind) || excluded.others.includes(kind))
      throw new Error(`a name constraint on ${OTHER_NAMES[kind] ?? "names of another kind"} is not supported`);
  const check = (name: string, isPermitted: boolean, isRefused: boolean) => {
    const problem = isRefused ? "a name constraint excludes it" : "no name constraint permits it";
    if (isRefused || !isPermitted) throw new Error(`a certificate authority may not vouch for ${name}: ${problem}`);
  };
  for (const name of names.dns)
    check(
      `DNS name ${quoted(name)}`,
      permitted.dns.length === 0 || permitted.dns.some((each) => isBelow(each, name)),
      excluded.dns.some((each) => isExcluded(each, name)),
    );
  for (const address of names.ip)
    check(
      `address ${formatAddress(address)}`,
      permitted.ip.length === 0 || permitted.ip.some((each) => isWithin(each, address)),
      excluded.ip.some((each) => isWithin(each, address)),
    );
}

/**
 * The problem of a chain that the TLS library has verified, or an empty text.
 * @param chain DER, the server's certificate first, the authority last
 */
export function problemOf(chain: readonly Uint8Array[]): string {
  try {
    const certificates = chain.map(certificateOf);
    // The constraints of each certificate hold for all below it.
    for (const [at, { constraints }] of certificates.entries())
      for (const { names } of constraints === undefined ? [] : certificates.slice(0, at))
        if (names !== undefined && constraints !== undefined)
          checkNames(sorted(inside(names, "a certificate's list of alternative names")), constraints);
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : "out of memory";
  }
}
