/** C2SP tlog-tiles: where the parts of a log are served, and how far each reaches. */

/** Levels of the tree in one tile. */
export const TILE_HEIGHT = 8;
/** Hashes or entries in a full tile. */
export const TILE_WIDTH = 2 ** TILE_HEIGHT;
const MAX_LEVEL = 63;

export interface Tile {
  /** Of hashes 0 to 63, where 0 is the leaf hashes; or a bundle of the entries themselves. */
  readonly level: number | 'entries';
  /** Which tile of its level. */
  readonly index: number;
  /** 1 to 256; less than 256 for a partial tile. */
  readonly width: number;
}

/** The hashes, leaves or entries start..end-1. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Three digits a path element, all but the last with an x: a file and a folder never share a name. */
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

/** Null for every other text, such as a second way to write the same tile: one tile has one address to cache. */
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
 * The hashes of its level that a tile holds, for a bundle the seqs of its entries; null when a log of `size` does not reach so
 * far: it then must not be served.
 */
export function tileSpan({ level, index, width }: Tile, size: number): Range | null {
  const hashes = level === 'entries' ? size : Math.floor(size / TILE_WIDTH ** level);
  const start = index * TILE_WIDTH;
  const end = start + width;
  return end <= hashes ? { start, end } : null;
}
