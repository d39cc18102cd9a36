/** The messages between the two threads. Answers come in the order of the questions. */

/** The keys of one tenant that are live, newest first. */
export interface KeyMaterial {
  /** `privateKey`: the 32-byte P-256 scalar. */
  readonly generations: readonly { readonly generation: number; readonly privateKey: Uint8Array }[];
  readonly symmetric: Uint8Array | null;
}

/** Keyed by kid; null if the tenant was removed. */
export type KeyChanges = ReadonlyMap<string, KeyMaterial | null>;

export type ToWorker =
  | { readonly kind: 'keys'; readonly changes: KeyChanges }
  | { readonly kind: 'open'; readonly bodies: Frame };

/** Facts about one envelope: its form, and the key that opened it. */
export interface Note {
  readonly kid: string;
  readonly symmetric: boolean;
  /** Null if the symmetric key opened it, or no key did. */
  readonly generation: number | null;
  readonly opened: boolean;
}

export type FromWorker =
  | { readonly kind: 'ready' }
  /** Null for a body that is not a SealedBundle. */
  | { readonly kind: 'opened'; readonly notes: readonly (Note | null)[]; readonly plaintexts: Frame };

/** Byte strings in one buffer, which a message between threads moves without a copy. */
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
