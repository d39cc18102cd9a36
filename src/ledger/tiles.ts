/** The files of a log as C2SP tlog-tiles, served as application/octet-stream, and offline proofs. */

const LENGTH_BYTES = 2;
/** A longer entry does not fit into a bundle, so it must not be appended. */
export const MAX_ENTRY_BYTES = 0xffff;

export function encodeHashTile(hashes: readonly Uint8Array[]): Buffer {
  return Buffer.concat(hashes);
}

/**
 * Writes each entry after its length as a big-endian uint16.
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

/** Levels of the tree in one tile. */
export const TILE_HEIGHT = 8;
/** Hashes or entries in a full tile. */
export const TILE_WIDTH = 2 ** TILE_HEIGHT;
const MAX_LEVEL = 63;

export interface Tile {
  /** 0 to 63 for hashes, where 0 has the leaf hashes; or a bundle of the entries themselves. */
  readonly level: number | 'entries';
  /** The number of the tile in its level. */
  readonly index: number;
  /** 1 to 256; less than 256 for a partial tile. */
  readonly width: number;
}

/** The hashes, leaves or entries from `start` to `end` - 1. */
export interface SeqRange {
  readonly start: number;
  readonly end: number;
}

/** Three digits per path element, all but the last with an x: a file and a folder never share a name. */
function formatIndex(index: number): string {
  const groups = [String(index % 1000).padStart(3, '0')];
  for (let rest = Math.floor(index / 1000); rest > 0; rest = Math.floor(rest / 1000)) {
    groups.unshift(`x${String(rest % 1000).padStart(3, '0')}`);
  }
  return groups.join('/');
}

/** `tile/<L>/<N>[.p/<W>]` or `tile/entries/<N>[.p/<W>]`, relative to the prefix of the log. */
export function formatTilePath({ level, index, width }: Tile): string {
  return `tile/${level}/${formatIndex(index)}${width === TILE_WIDTH ? '' : `.p/${width}`}`;
}

const PATH = /^tile\/(entries|0|[1-9]\d?)\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/;

/** Null for any other text, such as a second spelling of a tile: one tile has one address to cache. */
export function parseTilePath(path: string): Tile | null {
  const [, level, groups, width] = PATH.exec(path) ?? [];
  if (level === undefined || groups === undefined) return null;
  const tile: Tile = {
    level: level === 'entries' ? level : Number(level),
    index: Number(groups.replace(/[x/]/g, '')),
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
  const exists = tile.level === 'entries' || tile.level <= MAX_LEVEL;
  if (!exists || !Number.isSafeInteger(tile.index) || tile.width > TILE_WIDTH) return null;
  return formatTilePath(tile) === path ? tile : null;
}

/**
 * The hashes of a tile in its level; for a bundle, the seqs of its entries. Null: a log of `size` does not
 * reach that far, so the tile must not be served.
 */
export function tileSpan({ level, index, width }: Tile, size: number): SeqRange | null {
  const hashes = level === 'entries' ? size : Math.floor(size / TILE_WIDTH ** level);
  const start = index * TILE_WIDTH;
  const end = start + width;
  return end <= hashes ? { start, end } : null;
}

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';

/**
 * c2sp.org/tlog-proof@v1: everything needed to check one entry offline. To the format `extra` is opaque and
 * not authenticated; here it is the entry, which the proof covers.
 */
export interface TlogProof {
  readonly entry: Buffer;
  /** The seq of the entry. */
  readonly index: number;
  /** Audit path, the leaf's sibling first. */
  readonly hashes: readonly Buffer[];
  /** The signed note, verbatim. */
  readonly checkpoint: string;
}

export function formatTlogProof({ entry, index, hashes, checkpoint }: TlogProof): string {
  const path = hashes.map((hash) => hash.toString('base64'));
  const lines = [FIRST_LINE, `extra ${entry.toString('base64')}`, `index ${index}`, ...path];
  return `${lines.join('\n')}\n\n${checkpoint}`;
}
