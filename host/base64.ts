/** Bytes in base64, padded. */
export function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Decodes base64, padded or not, and ignores white space. @throws Error that does not quote the text */
export function fromBase64(text: string): Uint8Array {
  let decoded: string;
  try {
    decoded = atob(text);
  } catch {
    throw new Error("it is not base64");
  }
  return Uint8Array.from(decoded, (character) => character.charCodeAt(0));
}
