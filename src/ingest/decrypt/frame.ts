/** Byte strings as one buffer: a message between threads moves it and copies nothing, whatever their number. */
export interface Frame {
  readonly lengths: Uint32Array<ArrayBuffer>;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export function pack(parts: readonly Uint8Array[]): Frame {
  const lengths = Uint32Array.from(parts, (part) => part.length);
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return { lengths, bytes };
}

/** Views of the frame's own buffer. */
export function unpack({ lengths, bytes }: Frame): Buffer[] {
  let at = bytes.byteOffset;
  return Array.from(lengths, (length) => {
    const part = Buffer.from(bytes.buffer, at, length);
    at += length;
    return part;
  });
}
