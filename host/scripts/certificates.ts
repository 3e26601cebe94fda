/**
 * Checks of a certificate chain that the TLS library lacks: name constraints, policies, extended key usages of
 * authorities, and unknown critical extensions (RFC 5280, RFC 9618). Equals Go's crypto/x509, which linkerd's plugin
 * uses. A separate script, since few chains need it.
 */
import { quoted } from "../../cni/errors";
import { formatAddress, parseAddress } from "../../cni/subnets";
import { hex } from "../bytes";
import { type Element, elements, inside, malformed, Tag } from "../der";
import { certificateParts, Extension } from "../x509";

/** An integer with any tag; too large ones stay large. */
function integerOf({ body }: Element): number {
  const sign = (body[0] ?? 0) & 0x80 ? -1 : 0;
  return body.reduce((value, byte) => (Math.abs(value) > 0xffffff ? value : value * 256 + byte), sign);
}

const KNOWN: readonly string[] = Object.values(Extension);
/** RFC 5280 requires these to be non-critical; Go refuses a certificate with a critical one. */
const NEVER_CRITICAL: readonly string[] = [Extension.subjectKeyId, Extension.authorityKeyId];

interface Certificate {
  readonly isSelfIssued: boolean;
  /** Values by object identifier. */
  readonly extensions: ReadonlyMap<string, Uint8Array>;
  readonly critical: ReadonlySet<string>;
}

function certificateOf(der: Uint8Array): Certificate {
  const { issuer, subject, extensions: all } = certificateParts(der);
  const extensions = new Map<string, Uint8Array>();
  const critical = new Set<string>();
  for (const { id, isCritical, value } of all) {
    if (extensions.has(id)) throw new Error(`extension ${id} stands in a certificate twice`);
    if (isCritical && (!KNOWN.includes(id) || NEVER_CRITICAL.includes(id)))
      throw new Error(`critical extension ${id} of a certificate is not supported`);
    if (isCritical && id === Extension.alternativeNames && isEmpty(namesIn(value)))
      throw new Error("a certificate's critical alternative names are of no supported kind");
    extensions.set(id, value);
    if (isCritical) critical.add(id);
  }
  return { isSelfIssued: hex(issuer) === hex(subject), extensions, critical };
}

// Names and their constraints.

/** Constrained kinds of names, by their number among a GeneralName's choices. */
const KINDS = { 1: "email", 2: "dns", 6: "uri", 7: "ip" } as const;
type Kind = (typeof KINDS)[keyof typeof KINDS];
type Names = Readonly<Record<Kind, readonly Uint8Array[]>>;

const WORDS: Readonly<Record<Kind, string>> = { dns: "DNS name", email: "e-mail address", ip: "address", uri: "URI" };

function textOf(bytes: Uint8Array): string {
  if (bytes.some((byte) => byte > 0x7f)) malformed("a name in a certificate");
  return String.fromCharCode(...bytes);
}

function sorted(names: readonly Element[]): Names & { readonly others: number } {
  const found: Record<Kind, Uint8Array[]> = { dns: [], email: [], ip: [], uri: [] };
  let others = 0;
  for (const { tag, body } of names) {
    const kind = (tag & 0xe0) === 0x80 ? KINDS[(tag & 0x1f) as keyof typeof KINDS] : undefined;
    if (kind === undefined) others += 1;
    else found[kind].push(body);
  }
  return { ...found, others };
}

const isEmpty = (names: Names) => Object.values(KINDS).every((kind) => names[kind].length === 0);

function namesIn(value: Uint8Array): Names {
  const names = sorted(inside(value, "a certificate's list of alternative names"));
  for (const address of names.ip)
    if (address.length !== 4 && address.length !== 16) malformed("a certificate's address");
  return names;
}

/** Labels of visible characters, none of them empty. */
const LABELS = /^[!--/-~]+(?:\.[!--/-~]+)*$/;
const isDomain = (text: string) => text === "" || LABELS.test(text);
const isDomainConstraint = (text: string) => isDomain(text.replace(/^\.(?!$)/, ""));

interface Mailbox {
  readonly local: string;
  readonly domain: string;
}

/** Control characters are allowed except NUL, tab and line ends, and a tab after a backslash. */
const QUOTED = /^"((?:[^\0\t\n\r"\\]|\\[^\0\n\r])*)"@(.*)$/s;
const ATOMS = /^((?:[0-9A-Za-z!#$%&'*+\-/=?^_`{|}~.]|\\[\s\S])+)@(.*)$/s;

/** An e-mail address as RFC 2821 writes it. */
function mailbox(text: string): Mailbox | undefined {
  const isQuoted = text.startsWith('"');
  const [, written = "", domain = ""] = (isQuoted ? QUOTED : ATOMS).exec(text) ?? [];
  const local = written.replace(/\\([\s\S])/g, "$1");
  if (!isQuoted && (local === "" || /^\.|\.$|\.\./.test(local))) return undefined;
  const isWhole = isQuoted ? QUOTED.test(text) : ATOMS.test(text);
  return isWhole && isDomain(domain) ? { local, domain: domain.toLowerCase() } : undefined;
}

/** A network, in the shorter form if it is one of IPv4-mapped addresses. */
interface Network {
  readonly size: number;
  readonly address: readonly number[];
  readonly mask: readonly number[];
}

const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
const isMapped = (address: readonly number[]) =>
  address.length === 16 && MAPPED.every((byte, at) => address[at] === byte);

function network(value: Uint8Array): Network {
  const size = value.length / 2;
  const [address, mask] = [[...value.subarray(0, size)], [...value.subarray(size)]];
  const bits = mask.map((byte) => byte.toString(2).padStart(8, "0")).join("");
  if ((size !== 4 && size !== 16) || !/^1*0*$/.test(bits)) malformed("a constraint on addresses");
  return isMapped(address) ? { size, address: address.slice(12), mask: mask.slice(12) } : { size, address, mask };
}

/** Whether a name is in a subtree; `isExcluded` matters only for wildcards. */
type Match = (constraint: Uint8Array, name: Uint8Array, isExcluded: boolean) => boolean;

/** A subtree contains the name itself and all subdomains; one that begins with a dot, only subdomains. */
function isBelow(constraint: string, name: string): boolean {
  const [wanted, given] = [constraint.toLowerCase(), name.toLowerCase()];
  if (wanted === "") return true;
  if (!given.endsWith(wanted)) return false;
  return given.length === wanted.length || wanted.startsWith(".") || given.at(-wanted.length - 1) === ".";
}

const withoutFirst = (name: string) => (name.includes(".") ? name.slice(name.indexOf(".")) : "");

function matchesDomain(constraint: string, name: string, isExcluded: boolean): boolean {
  if (isBelow(constraint, name)) return true;
  // A wildcard also matches names of an excluded subtree.
  const parent = withoutFirst(constraint.toLowerCase());
  return isExcluded && name.startsWith("*") && parent !== "" && parent === withoutFirst(name.toLowerCase());
}

/** The host of a URI; a URI without a host's name cannot be compared. */
function hostOf(uri: string): string {
  const [, authority = ""] = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/([^/?#]*)/.exec(uri) ?? [];
  const [, host = ""] = /^([^:[\]]+)(?::\d*)?$/.exec(authority.slice(authority.lastIndexOf("@") + 1)) ?? [];
  if (host === "" || parseAddress(host) !== undefined)
    throw new Error(`URI ${quoted(uri)} of a certificate has no host name that a name constraint could hold for`);
  return host;
}

const domainOf = (name: Uint8Array, what: string) => {
  const text = textOf(name);
  return isDomain(text) ? text : malformed(what);
};

const MATCHES: Readonly<Record<Kind, Match>> = {
  dns: (constraint, name, isExcluded) =>
    matchesDomain(textOf(constraint), domainOf(name, "a certificate's DNS name"), isExcluded),
  uri: (constraint, name, isExcluded) => matchesDomain(textOf(constraint), hostOf(textOf(name)), isExcluded),
  email: (constraint, name, isExcluded) => {
    const [wanted, given] = [textOf(constraint), mailbox(textOf(name)) ?? malformed("a certificate's e-mail address")];
    if (!wanted.includes("@")) return matchesDomain(wanted, given.domain, isExcluded);
    const whole = mailbox(wanted);
    return whole?.local === given.local && whole.domain === given.domain;
  },
  ip: (constraint, name) => {
    const { size, address, mask } = network(constraint);
    const given = isMapped([...name]) ? [...name.subarray(12)] : [...name];
    if (size !== name.length || address.length !== given.length) return false;
    return given.every((byte, at) => (byte & (mask[at] ?? 0)) === ((address[at] ?? 0) & (mask[at] ?? 0)));
  },
};

/** Each constraint must be valid, even without a name of its kind. */
const CHECKS: Readonly<Record<Kind, (constraint: Uint8Array) => boolean>> = {
  dns: (constraint) => isDomainConstraint(textOf(constraint)),
  uri: (constraint) => isDomainConstraint(textOf(constraint)) && parseAddress(textOf(constraint)) === undefined,
  email: (constraint) => {
    const text = textOf(constraint);
    return text.includes("@") ? mailbox(text) !== undefined : isDomainConstraint(text);
  },
  ip: (constraint) => network(constraint).size > 0,
};

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
  const [permitted, excluded] = [0xa0, 0xa1].map((tag) => {
    const list = lists.find((each) => each.tag === tag);
    const bases = elements(list?.body ?? new Uint8Array(0), what).map((subtree) =>
      subtree.tag === Tag.sequence ? (elements(subtree.body, what)[0] ?? malformed(what)) : malformed(what),
    );
    const found = sorted(bases);
    if (found.others > 0 && isCritical)
      throw new Error("a critical name constraint is of a kind that is not supported");
    for (const kind of Object.values(KINDS)) for (const each of found[kind]) if (!CHECKS[kind](each)) malformed(what);
    return found;
  });
  if (lists.every(({ body }) => body.length === 0)) malformed(what);
  return { permitted: permitted ?? malformed(what), excluded: excluded ?? malformed(what) };
}

function shown(kind: Kind, name: Uint8Array): string {
  return `${WORDS[kind]} ${kind === "ip" ? formatAddress(name) : quoted(textOf(name))}`;
}

/** Every name must be allowed, not only the requested one. */
function checkNames(names: Names, { permitted, excluded }: Constraints): void {
  // No constraint allows an unreadable URI or e-mail address.
  for (const uri of names.uri) hostOf(textOf(uri));
  for (const email of names.email)
    if (mailbox(textOf(email)) === undefined) malformed("a certificate's e-mail address");
  for (const name of names.dns) domainOf(name, "a certificate's DNS name");
  for (const kind of Object.values(KINDS)) {
    for (const name of names[kind]) {
      const within = (subtrees: Names, isExcluded: boolean) =>
        subtrees[kind].some((each) => MATCHES[kind](each, name, isExcluded));
      if (permitted[kind].length > 0 && !within(permitted, false))
        throw new Error(
          `a certificate authority may not vouch for ${shown(kind, name)}: no name constraint permits it`,
        );
      if (within(excluded, true))
        throw new Error(
          `a certificate authority may not vouch for ${shown(kind, name)}: a name constraint excludes it`,
        );
    }
  }
}

/** The constraints of each certificate on all below it. */
function checkConstraints(chain: readonly Certificate[]): void {
  for (const [at, { extensions, critical }] of chain.entries()) {
    const value = extensions.get(Extension.nameConstraints);
    if (value === undefined) continue;
    const constraints = constraintsIn(value, critical.has(Extension.nameConstraints));
    for (const below of chain.slice(0, at)) {
      const names = below.extensions.get(Extension.alternativeNames);
      if (names !== undefined) checkNames(namesIn(names), constraints);
    }
  }
}

// Purposes.

const ANY_PURPOSE = "551d2500";
const SERVER = "2b06010505070301";

/** An authority with extended key usages may issue only for these. */
function checkPurposes(chain: readonly Certificate[]): void {
  for (const { extensions } of chain) {
    const value = extensions.get(Extension.purposes);
    if (value === undefined) continue;
    const purposes = inside(value, "a certificate's list of purposes").map(({ body }) => hex(body));
    if (purposes.length > 0 && !purposes.includes(ANY_PURPOSE) && !purposes.includes(SERVER))
      throw new Error("a certificate of the chain is not for servers");
  }
}

// Policies.

const ANY_POLICY = "551d2000";

/** The policies that are valid so far, each with those by which the next certificate may name it. */
type Policies = Map<string, readonly string[]>;

function policiesIn(value: Uint8Array | undefined): readonly string[] {
  if (value === undefined) return [];
  const what = "a certificate's list of policies";
  const found = inside(value, what).map(({ tag, body }) => {
    const [id] = elements(body, what);
    return tag === Tag.sequence && id?.tag === Tag.oid ? hex(id.body) : malformed(what);
  });
  return new Set(found).size === found.length ? found : malformed(what);
}

function mappingsIn(value: Uint8Array | undefined): readonly (readonly [string, string])[] {
  if (value === undefined) return [];
  const what = "a certificate's list of policy mappings";
  return inside(value, what).map(({ body }) => {
    const [issuer, subject] = elements(body, what);
    return [hex(issuer?.body ?? malformed(what)), hex(subject?.body ?? malformed(what))];
  });
}

/** Number of certificates before a rule applies; undefined if the certificate does not set it. */
interface Limits {
  readonly explicit: number | undefined;
  readonly mapping: number | undefined;
  readonly any: number | undefined;
}

function limitsIn({ extensions }: Certificate): Limits {
  const constraints = extensions.get(Extension.policyConstraints);
  const all = constraints === undefined ? [] : inside(constraints, "a certificate's policy constraints");
  const of = (element: Element | undefined) => {
    const value = element === undefined ? undefined : integerOf(element);
    return value !== undefined && value >= 0 ? value : undefined;
  };
  const inhibit = extensions.get(Extension.inhibitAnyPolicy);
  return {
    explicit: of(all.find(({ tag }) => tag === 0x80)),
    mapping: of(all.find(({ tag }) => tag === 0x81)),
    any: of(inhibit === undefined ? undefined : elements(inhibit, "a certificate's inhibitAnyPolicy")[0]),
  };
}

/** The policies of a certificate that those above it allow. */
function allowed(before: Policies, named: readonly string[], mayBeAny: boolean): Policies {
  const expected = new Set([...before.values()].flat());
  const after: Policies = new Map();
  for (const policy of named) {
    if (policy !== ANY_POLICY && (expected.has(policy) || before.has(ANY_POLICY))) after.set(policy, [policy]);
  }
  if (named.includes(ANY_POLICY) && mayBeAny) {
    for (const policy of expected) if (!after.has(policy)) after.set(policy, [policy]);
  }
  return after;
}

/** Renames policies for the certificates below; false if it names what cannot be renamed. */
function rename(policies: Policies, mappings: readonly (readonly [string, string])[], mayRename: boolean): boolean {
  if (!mayRename) {
    for (const [issuer] of mappings) policies.delete(issuer);
    return true;
  }
  const targets = new Map<string, string[]>();
  for (const [issuer, subject] of mappings) {
    if (issuer === ANY_POLICY || subject === ANY_POLICY) return false;
    targets.set(issuer, [...(targets.get(issuer) ?? []), subject]);
  }
  for (const [issuer, subjects] of targets) {
    if (policies.has(issuer) || policies.has(ANY_POLICY)) policies.set(issuer, subjects);
  }
  return true;
}

/** RFC 5280, section 6.1, as RFC 9618 has it: here every policy is welcome, but one may be required. */
function checkPolicies(chain: readonly Certificate[]): void {
  if (chain.length === 1) return;
  const refuse = () => {
    throw new Error("the chain has no certificate policy that it requires");
  };
  const count = chain.length - 1;
  let [explicit, mapping, any] = [count + 1, count + 1, count + 1];
  let policies: Policies | undefined = new Map([[ANY_POLICY, [ANY_POLICY]]]);
  for (let at = count - 1; at >= 0; at--) {
    const certificate = chain[at] as Certificate;
    const { isSelfIssued, extensions } = certificate;
    const named = policiesIn(extensions.get(Extension.policies));
    const mappings = mappingsIn(extensions.get(Extension.policyMappings));
    if (named.length === 0) policies = undefined;
    if (explicit === 0 && policies === undefined) refuse();
    if (policies !== undefined) {
      policies = allowed(policies, named, any > 0 || (at > 0 && isSelfIssued));
      if (at > 0 && !rename(policies, mappings, mapping > 0)) refuse();
    }
    const limits = limitsIn(certificate);
    if (at > 0) {
      if (!isSelfIssued)
        [explicit, mapping, any] = [explicit, mapping, any].map((left) => Math.max(0, left - 1)) as [
          number,
          number,
          number,
        ];
      explicit = Math.min(explicit, limits.explicit ?? explicit);
      mapping = Math.min(mapping, limits.mapping ?? mapping);
      any = Math.min(any, limits.any ?? any);
    } else {
      explicit = limits.explicit === 0 ? 0 : Math.max(0, explicit - 1);
    }
  }
  if (explicit === 0 && (policies === undefined || policies.size === 0)) refuse();
}

/**
 * The problem of a chain that the TLS library has verified, or an empty text.
 * @param chain DER, the server's certificate first, the authority last
 */
export function problemOf(chain: readonly Uint8Array[]): string {
  try {
    const certificates = chain.map(certificateOf);
    checkPolicies(certificates);
    checkPurposes(certificates);
    checkConstraints(certificates);
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : "out of memory";
  }
}
