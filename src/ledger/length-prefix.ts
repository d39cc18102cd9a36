/**
 * 4-byte big-endian length, then the bytes (contract section 7), so that no two lists of parts give one message.
 * Text is UTF-8: a lone surrogate would be replaced, so callers pass well-formed Unicode only.
 */
export function lp4(part: string | Uint8Array): Buffer {
  const bytes = typeof part === 'string' ? Buffer.from(part) : part;
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
