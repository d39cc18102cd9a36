/** C2SP tlog-tiles: the bytes that are served, as application/octet-stream. */

const LENGTH_BYTES = 2;
/** An entry that is longer has no place in a bundle, so it must not be appended in the first place. */
export const MAX_ENTRY_BYTES = 0xffff;

export function encodeHashTile(hashes: readonly Uint8Array[]): Buffer {
  return Buffer.concat(hashes);
}

/**
 * Each entry behind its length as a big-endian uint16.
 * @throws {RangeError} for an entry over 65,535 bytes
 */
export function encodeEntryBundle(entries: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    entries.flatMap((entry) => {
      if (entry.length > MAX_ENTRY_BYTES) throw new RangeError('an entry is too long for a bundle');
      const length = Buffer.alloc(LENGTH_BYTES);
      length.writeUInt16BE(entry.length);
      return [length, entry];
    }),
  );
}
