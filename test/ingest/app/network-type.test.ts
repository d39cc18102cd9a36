import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openNetworkTypes, UNKNOWN_NETWORKS } from '../../../src/ingest/network-type-files.ts';
import { parseAddress } from '../../../src/lib/ip.ts';
import { tempDir } from '../../support/command.ts';
import { createMmdb } from './mmdb.ts';

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
