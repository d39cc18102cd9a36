/**
 * Decodes canonical padded base64 (RFC 4648 section 4). Returns null for anything that another encoder would not
 * have produced: missing padding, url alphabet, white space, non-zero trailing bits.
 */
export function decodeBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}

/** Decodes canonical unpadded base64url (RFC 4648 section 5), or returns null. */
export function decodeBase64Url(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}
