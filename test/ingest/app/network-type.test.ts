import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openNetworkTypes, UNKNOWN_NETWORKS } from '../../../src/ingest/network-type-files.ts';
import { parseAddress } from '../../../src/lib/ip.ts';
import { tempDir } from '../../support/command.ts';

/* Writes a MaxMind database of one network, by the published format (MaxMind DB File Format Specification 2.0). */

type Value = string | boolean | number | { readonly [key: string]: Value } | readonly Value[];

const STRING = 2;
const UINT16 = 5;
const UINT32 = 6;
const MAP = 7;
const UINT64 = 9;
const ARRAY = 11;
const BOOLEAN = 14;

function control(type: number, size: number): Buffer {
  // Types above 7 are extended: a zero type, then the type minus 7. Sizes stay below 29 here.
  return type <= 7 ? Buffer.from([(type << 5) | size]) : Buffer.from([size, type - 7]);
}

function encode(value: Value, type?: number): Buffer {
  if (typeof value === 'string') {
    const text = Buffer.from(value);
    return Buffer.concat([control(STRING, text.length), text]);
  }
  if (typeof value === 'boolean') return control(BOOLEAN, value ? 1 : 0);
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    const trimmed = bytes.subarray(bytes.findIndex((byte) => byte !== 0) % 4);
    return Buffer.concat([control(type ?? UINT32, trimmed.length), trimmed]);
  }
  if (Array.isArray(value)) {
    return Buffer.concat([control(ARRAY, value.length), ...value.map((item: Value) => encode(item))]);
  }
  const entries = Object.entries(value as Readonly<Record<string, Value>>);
  return Buffer.concat([
    control(MAP, entries.length),
    ...entries.flatMap(([key, item]) => [encode(key), encode(item, TYPES[key])]),
  ]);
}

const TYPES: Readonly<Record<string, number>> = {
  record_size: UINT16,
  ip_version: UINT16,
  binary_format_major_version: UINT16,
  binary_format_minor_version: UINT16,
  build_epoch: UINT64,
};

/** @param prefix the bits of the network, for instance `11001011` for 203.0.0.0/8 */
function createMmdb(prefix: string, record: Value): Buffer {
  const count = prefix.length;
  const nodes = prefix.split('').map((bit, i) => {
    const hit = i === count - 1 ? count + 16 : i + 1;
    const node = Buffer.alloc(6);
    node.writeUIntBE(bit === '0' ? hit : count, 0, 3);
    node.writeUIntBE(bit === '1' ? hit : count, 3, 3);
    return node;
  });
  const metadata = encode({
    node_count: count,
    record_size: 24,
    ip_version: 4,
    database_type: 'Test',
    languages: ['en'],
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1_763_600_000,
    description: { en: 'one network' },
  });
  const marker = Buffer.concat([Buffer.from([0xab, 0xcd, 0xef]), Buffer.from('MaxMind.com')]);
  return Buffer.concat([...nodes, Buffer.alloc(16), encode(record), marker, metadata]);
}

const PREFIX_203 = '11001011';

async function open(record: Parameters<typeof createMmdb>[1]) {
  const file = join(tempDir('mmdb'), 'networks.mmdb');
  writeFileSync(file, createMmdb(PREFIX_203, record));
  return openNetworkTypes(file);
}

const inside = parseAddress('203.0.113.7');
const outside = parseAddress('198.51.100.7');

describe('GPD_MMDB_FILE', () => {
  it.each([
    ['user_type hosting', { traits: { user_type: 'hosting' } }, true],
    ['another user_type', { traits: { user_type: 'residential' } }, false],
    ['the flag in traits', { traits: { is_hosting_provider: true } }, true],
    ['the flag at the top', { is_hosting_provider: true }, true],
    ['nothing of the kind', { autonomous_system_number: 64_500 }, null],
  ] as const)('reads %s', async (_name, record, expected) => {
    const { isHosting } = await open(record);
    expect(isHosting(inside)).toBe(expected);
    expect(isHosting(outside)).toBeNull();
    expect(isHosting(null)).toBeNull();
  });

  it('refuses an invalid file with one sentence', async () => {
    const file = join(tempDir('mmdb'), 'broken.mmdb');
    writeFileSync(file, 'not a database');
    await expect(openNetworkTypes(file)).rejects.toThrow(
      /^GPD_MMDB_FILE: .* cannot be read as a MaxMind database$/,
    );
    await expect(openNetworkTypes(`${file}.none`)).rejects.toThrow('GPD_MMDB_FILE');
  });

  it('is read anew once it was replaced; one that is damaged leaves the one before in use', async () => {
    const file = join(tempDir('mmdb'), 'networks.mmdb');
    const replace = (content: Buffer | string) => {
      writeFileSync(`${file}.new`, content);
      renameSync(`${file}.new`, file);
    };
    replace(createMmdb(PREFIX_203, { is_hosting_provider: false }));
    const { isHosting, refresh } = await openNetworkTypes(file);
    replace(createMmdb(PREFIX_203, { is_hosting_provider: true }));
    expect(isHosting(inside)).toBe(false);
    await refresh();
    expect(isHosting(inside)).toBe(true);
    replace('cut off');
    await expect(refresh()).rejects.toThrow('GPD_MMDB_FILE');
    expect(isHosting(inside)).toBe(true);
  });

  it('knows nothing without a file', () => {
    expect(UNKNOWN_NETWORKS.isHosting(inside)).toBeNull();
  });
});
