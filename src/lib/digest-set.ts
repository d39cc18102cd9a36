import { sha256 } from './hash.ts';

/** 16 bytes of SHA-256 stand for a text, as 32-bit words. */
const WORDS = 4;
const WORD_BYTES = 4;
const FIRST_SLOTS = 1024;
/** Filled past this part, the table doubles. */
const MAX_LOAD = 0.75;

export type DigestSet = ReturnType<typeof makeDigestSet>;

type Table = Uint32Array<ArrayBuffer>;

function isFree(table: Table, at: number): boolean {
  for (let i = at; i < at + WORDS; i += 1) if (table[i] !== 0) return false;
  return true;
}

function holds(table: Table, at: number, digest: Table): boolean {
  for (let i = 0; i < WORDS; i += 1) if (table[at + i] !== digest[i]) return false;
  return true;
}

/** Index of the first word of `digest` in the table, or of the free slot where it belongs: linear probing. */
function findSlot(table: Table, digest: Table): number {
  let at = ((digest[0] ?? 0) * WORDS) % table.length;
  while (!isFree(table, at) && !holds(table, at, digest)) at = (at + WORDS) % table.length;
  return at;
}

function doubled(table: Table): Table {
  const wider = new Uint32Array(table.length * 2);
  for (let at = 0; at < table.length; at += WORDS) {
    if (isFree(table, at)) continue;
    const digest = table.subarray(at, at + WORDS);
    wider.set(digest, findSlot(wider, digest));
  }
  return wider;
}

/**
 * A set of texts that is only asked whether it holds one: outside the JavaScript heap, 22 to 43 bytes a text once there
 * are a thousand, however long the texts are.
 * @param salt unknown to who wrote the texts: nobody can choose where they fall
 */
export function makeDigestSet(salt: string) {
  let table: Table = new Uint32Array(FIRST_SLOTS * WORDS);
  let size = 0;
  const digest = new Uint32Array(WORDS);
  return {
    /** True when `text` was not there before. */
    add(text: string) {
      const hash = sha256(salt + text);
      for (let i = 0; i < WORDS; i += 1) digest[i] = hash.readUInt32LE(i * WORD_BYTES);
      // All zeros is a free slot.
      if (digest.every((word) => word === 0)) digest[0] = 1;
      const at = findSlot(table, digest);
      if (!isFree(table, at)) return false;
      table.set(digest, at);
      size += 1;
      if (size > (table.length / WORDS) * MAX_LOAD) table = doubled(table);
      return true;
    },
    /** What the table takes. */
    bytes: () => table.byteLength,
  };
}
