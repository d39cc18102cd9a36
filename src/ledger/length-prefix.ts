/**
 * lp4 of each part in turn (contract section 7): 4-byte big-endian length, then the bytes, so that no two lists of parts
 * give one message. Text is UTF-8: a lone surrogate would be replaced, so callers pass well-formed Unicode only.
 */
export function lp4(parts: readonly (string | Uint8Array)[]): Buffer {
  const bytes = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + 4 + Buffer.byteLength(part), 0));
  let at = 0;
  for (const part of parts) {
    const size = Buffer.byteLength(part);
    bytes.writeUInt32BE(size, at);
    if (typeof part === 'string') bytes.write(part, at + 4);
    else bytes.set(part, at + 4);
    at += 4 + size;
  }
  return bytes;
}
