/** The extensions of certificates (RFC 5280, section 4.2). */
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

const WHAT = "a certificate";

function extensionOf({ body }: Element): ExtensionPart {
  const [id, ...rest] = elements(body);
  return {
    id: hex(id?.body ?? malformed("an extension")),
    isCritical: rest[0]?.tag === Tag.boolean && rest[0].body[0] !== 0,
    value: rest.at(-1)?.body ?? malformed("an extension"),
  };
}

/** The extensions of a certificate in DER. @throws Error if they are missing or incomplete */
export function extensionsOf(der: Uint8Array): readonly ExtensionPart[] {
  const [signed] = inside(der, WHAT);
  const lists = elements(signed?.body ?? malformed(WHAT)).filter(({ tag }) => tag === Tag.extensions);
  return lists.flatMap(({ body: list }) => inside(list, "a list of extensions").map(extensionOf));
}
