import { describe, expect, it } from 'vitest';
import {
  encodeEntryBundle,
  encodeHashTile,
  formatTilePath,
  parseTilePath,
  type Tile,
  tileSpan,
} from '../../src/ledger/tiles.ts';
import { createLeaves } from './support.ts';

describe('the path of a tile', () => {
  it('is that of C2SP tlog-tiles', () => {
    const cases: readonly [Tile, string][] = [
      [{ level: 0, index: 0, width: 256 }, 'tile/0/000'],
      [{ level: 0, index: 0, width: 7 }, 'tile/0/000.p/7'],
      [{ level: 'entries', index: 999, width: 255 }, 'tile/entries/999.p/255'],
      [{ level: 1, index: 1000, width: 1 }, 'tile/1/x001/000.p/1'],
      [{ level: 2, index: 1_234_067, width: 256 }, 'tile/2/x001/x234/067'],
      [{ level: 63, index: 1_000_000, width: 256 }, 'tile/63/x001/x000/000'],
      [{ level: 0, index: Number.MAX_SAFE_INTEGER, width: 256 }, 'tile/0/x009/x007/x199/x254/x740/991'],
    ];
    for (const [tile, path] of cases) {
      expect(formatTilePath(tile)).toBe(path);
      expect(parseTilePath(path)).toEqual(tile);
    }
  });

  it('has one form only', () => {
    const bad = [
      '',
      'tile/0/000/',
      'tile/0/0',
      'tile/0/1000',
      'tile/0/001/002',
      'tile/00/000',
      'tile/64/000',
      'tile/entry/000',
      'tile/0/000.p',
      'tile/0/000.p/0',
      'tile/0/000.p/07',
      'tile/0/000.p/256',
      'tile/0/000.p/7/8',
      'tile/0/000\n',
      'tile/0/x009/x007/x199/x254/x740/992',
      'tile/0/x001/x000/x000/x000/x000/x000/000',
      'tile/0/../000',
    ];
    for (const path of bad) expect(parseTilePath(path), path).toBeNull();
  });
});

describe('the span of a tile', () => {
  const span = (path: string, size: number): readonly number[] | null => {
    const tile = parseTilePath(path);
    const found = tile === null ? null : tileSpan(tile, size);
    return found === null ? null : [found.start, found.end];
  };

  it('is what the 70,000 entries of the standard come to', () => {
    expect(span('tile/0/272', 70_000)).toEqual([272 * 256, 273 * 256]);
    expect(span('tile/0/273.p/112', 70_000)).toEqual([69_888, 70_000]);
    expect(span('tile/1/000', 70_000)).toEqual([0, 256]);
    expect(span('tile/1/001.p/17', 70_000)).toEqual([256, 273]);
    expect(span('tile/2/000.p/1', 70_000)).toEqual([0, 1]);
    expect(span('tile/entries/273.p/112', 70_000)).toEqual([69_888, 70_000]);
  });

  it('is null past the end of the log, at every level', () => {
    const beyond = ['tile/0/273.p/113', 'tile/0/273', 'tile/0/274.p/1', 'tile/1/001.p/18', 'tile/2/000.p/2'];
    for (const path of [...beyond, 'tile/3/000.p/1', 'tile/63/000.p/1', 'tile/entries/273.p/113']) {
      expect(span(path, 70_000), path).toBeNull();
    }
    expect(span('tile/0/000.p/1', 0)).toBeNull();
  });
});

describe('the bytes of a tile', () => {
  it('are hashes one after another', () => {
    const leaves = createLeaves(3);
    const tile = encodeHashTile(leaves);
    expect(tile.length).toBe(96);
    expect(tile.subarray(32, 64)).toEqual(leaves[1]);
  });

  it('are entries behind a big-endian length of two bytes', () => {
    const entry = Buffer.alloc(258, 0x61);
    expect(encodeEntryBundle([Buffer.from('ab'), Buffer.alloc(0), entry])).toEqual(
      Buffer.concat([Buffer.from([0, 2, 0x61, 0x62, 0, 0, 1, 2]), entry]),
    );
  });

  it('cannot hold an entry of 65,536 bytes', () => {
    expect(encodeEntryBundle([Buffer.alloc(65_535)]).length).toBe(65_537);
    expect(() => encodeEntryBundle([Buffer.alloc(65_536)])).toThrow(RangeError);
  });
});
