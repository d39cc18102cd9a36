/**
 * 4-byte big-endian length, then the bytes (contract section 7), so that no two lists of parts give one message.
 * Text is UTF-8: a lone surrogate would be replaced, so callers pass well-formed Unicode only.
 */
export function lp4(part: string | Uint8Array): Buffer {
  const size = Buffer.byteLength(part);
  const bytes = Buffer.allocUnsafe(4 + size);
  bytes.writeUInt32BE(size);
  if (typeof part === 'string') bytes.write(part, 4);
  else bytes.set(part, 4);
  return bytes;
}
