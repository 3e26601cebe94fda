/** Parses the parts of a certificate (RFC 5280, section 4.1), without checking them. */
import { hex } from "./bytes";
import { type Element, elements, inside, malformed, Tag } from "./der";

/** Extensions of 2.5.29, by their identifier in hexadecimal digits. */
export const Extension = {
  subjectKeyId: "551d0e",
  keyUsage: "551d0f",
  alternativeNames: "551d11",
  basicConstraints: "551d13",
  nameConstraints: "551d1e",
  revocationLists: "551d1f",
  policies: "551d20",
  policyMappings: "551d21",
  authorityKeyId: "551d23",
  policyConstraints: "551d24",
  purposes: "551d25",
  inhibitAnyPolicy: "551d36",
} as const;

interface ExtensionPart {
  readonly id: string;
  readonly isCritical: boolean;
  readonly value: Uint8Array;
}

interface CertificateParts {
  /** The signed bytes. */
  readonly signed: Uint8Array;
  readonly issuer: Uint8Array;
  /** Begin and end of validity. */
  readonly validity: readonly Element[];
  readonly subject: Uint8Array;
  /** SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array;
  readonly extensions: readonly ExtensionPart[];
  /** The algorithm's identifier, without parameters. */
  readonly algorithm: string;
  readonly signature: Uint8Array;
}

const WHAT = "a certificate";

function extensionOf({ body }: Element): ExtensionPart {
  const [id, ...rest] = elements(body);
  return {
    id: hex(id?.body ?? malformed("an extension")),
    isCritical: rest[0]?.tag === Tag.boolean && rest[0].body[0] !== 0,
    value: rest.at(-1)?.body ?? malformed("an extension"),
  };
}

/** @throws Error if a part is missing or incomplete */
export function certificateParts(der: Uint8Array): CertificateParts {
  const [body, algorithm, signature] = inside(der, WHAT);
  const all = elements(body?.body ?? malformed(WHAT));
  // Certificates without extensions have no version.
  const [, , issuer, validity, subject, publicKey] = all[0]?.tag === Tag.version ? all.slice(1) : all;
  const lists = all.filter(({ tag }) => tag === Tag.extensions);
  return {
    signed: body?.whole ?? malformed(WHAT),
    issuer: issuer?.whole ?? malformed(WHAT),
    validity: elements(validity?.body ?? malformed(WHAT)),
    subject: subject?.whole ?? malformed(WHAT),
    publicKey: publicKey?.whole ?? malformed(WHAT),
    extensions: lists.flatMap(({ body: list }) => inside(list, "a list of extensions").map(extensionOf)),
    algorithm: hex(elements(algorithm?.body ?? malformed(WHAT))[0]?.body ?? malformed(WHAT)),
    signature: signature?.body.subarray(1) ?? malformed(WHAT),
  };
}
