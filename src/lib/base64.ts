/**
 * As strict as encoding again and comparing, without doing it for the whole text: the length leaves no room for a
 * character that was passed over, and only the last group can have bits too many. Of a character beyond ASCII Node's
 * decoder may take the low byte.
 */
function isCanonical(text: string, bytes: Buffer): boolean {
  if (Buffer.byteLength(text) !== text.length) return false;
  const padding = text.endsWith('==') ? 2 : Number(text.endsWith('='));
  if (text.length % 4 !== 0 || bytes.length !== (text.length / 4) * 3 - padding) return false;
  if (text.includes('-') || text.includes('_')) return false;
  return text.endsWith(bytes.toString('base64', Math.max(0, bytes.length - (3 - padding))));
}

/**
 * Decodes canonical padded base64 (RFC 4648 section 4). Returns null for anything that another encoder would not
 * have produced: missing padding, url alphabet, white space, non-zero trailing bits.
 */
export function decodeBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return isCanonical(text, bytes) ? bytes : null;
}

/** Decodes canonical unpadded base64url (RFC 4648 section 5), or returns null. */
export function decodeBase64Url(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}
