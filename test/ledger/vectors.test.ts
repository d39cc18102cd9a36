import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { commitSubject, genesisEntry, impersonalEntry } from '../../src/ledger/entries.ts';
import {
  appendLeaves,
  consistencyProof,
  EMPTY_FRONTIER,
  frontierRoot,
  inclusionProof,
  leafHash,
  rootAt,
} from '../../src/ledger/merkle.ts';
import { formatCheckpoint, parseVkey, verifyCheckpoint } from '../../src/ledger/note.ts';
import {
  encodeEntryBundle,
  encodeHashTile,
  formatTilePath,
  formatTlogProof,
} from '../../src/ledger/tiles.ts';
import { verifyConsistency } from '../../src/ledger/verify.ts';
import { decodeEntryBundle, openPersonalEntry, parseEntry, verifyTlogProof } from '../support/log-reader.ts';
import { createLog, flipBit } from './support.ts';

const ledgerVector = (name: string): Buffer =>
  readFileSync(new URL(`../vectors/ledger/${name}`, import.meta.url));
const lines = ledgerVector('entries.ndjson').toString().trimEnd().split('\n');
const stored = lines.map((line) => JSON.parse(line) as { leafHash: string; entry: string });

const vkey = ledgerVector('vkey').toString().trimEnd();
const key = parseVkey(vkey) ?? expect.fail('not a key');
const entries = stored.map(({ entry }) => Buffer.from(entry));
const leaves = entries.map(leafHash);
const { reader } = createLog(leaves);
const START = Date.UTC(2026, 10, 20, 10);

interface Consistency {
  readonly size1: number;
  readonly size2: number;
  readonly root1: string;
  readonly root2: string;
  readonly proof: readonly string[];
}

type Openings = Record<'user-1', { readonly key: string; readonly salts: Readonly<Record<string, string>> }>;

describe('the log of seven entries', () => {
  it('has these leaf hashes', () => {
    expect(entries).toHaveLength(7);
    expect(leaves.map((leaf) => leaf.toString('hex'))).toEqual(stored.map(({ leafHash: hex }) => hex));
  });

  it('has the roots of its checkpoints at 3 and at 7, which its key signed', async () => {
    for (const [name, size] of [
      ['checkpoint.3', 3],
      ['checkpoint', 7],
    ] as const) {
      const note = ledgerVector(name).toString();
      const root = frontierRoot(appendLeaves(EMPTY_FRONTIER, leaves.slice(0, size)).frontier);
      const checkpoint = { origin: key.name, size, root };
      expect(verifyCheckpoint(note, key)).toEqual({ ok: true, checkpoint });
      expect(note.startsWith(`${formatCheckpoint(checkpoint)}\n— `)).toBe(true);
      expect(await rootAt(size, reader)).toEqual(root);
    }
  });

  it('has these offline proofs, byte for byte, and they verify', async () => {
    const checkpoint = ledgerVector('checkpoint').toString();
    for (const [index, entry] of entries.entries()) {
      const hashes = await inclusionProof(index, 7, reader);
      const text = ledgerVector(`${index}.tlog-proof`).toString();
      expect(formatTlogProof({ entry, index, hashes, checkpoint })).toBe(text);
      expect(verifyTlogProof(text, vkey)).toMatchObject({
        ok: true,
        entry,
        index,
        size: 7,
        leafHash: leaves[index],
      });
    }
  });

  it('has this consistency proof from 3 to 7', async () => {
    const { size1, size2, root1, root2, proof } = JSON.parse(
      ledgerVector('consistency-3-7.json').toString(),
    ) as Consistency;
    const ourProof = await consistencyProof(size1, size2, reader);
    expect(ourProof.map((hash) => hash.toString('base64'))).toEqual(proof);
    const [older, newer] = [Buffer.from(root1, 'base64'), Buffer.from(root2, 'base64')];
    expect(verifyConsistency(size1, size2, ourProof, older, newer)).toBe(true);
    expect(verifyConsistency(size1, size2, ourProof, flipBit(older, 0), newer)).toBe(false);
  });

  it('has these tiles', () => {
    const tile = { index: 0, width: 7 };
    const hashes = ledgerVector(formatTilePath({ ...tile, level: 0 }));
    const bundle = ledgerVector(formatTilePath({ ...tile, level: 'entries' }));
    expect(encodeHashTile(leaves)).toEqual(hashes);
    expect(encodeEntryBundle(entries)).toEqual(bundle);
    expect(decodeEntryBundle(bundle)).toEqual(entries);
  });

  it('has a genesis and a purpose that are built to the byte', () => {
    expect(genesisEntry(START, vkey)).toEqual(entries[0]);
    const body = {
      gpc: 'opt-out',
      id: 'device-identification',
      policyHash: 'sha256:94390f6463b2b2cd6f34a762138b5799f8a34e05af5e7908ba88f1fa82f86cba',
      policyVersion: '2026-11',
      ttlDays: 180,
      version: 1,
    };
    const head = { type: 'purpose.defined', at: START + 1000, purpose: 'device-identification' } as const;
    expect(impersonalEntry(head, body)).toEqual(entries[1]);
  });

  it('has the subject commitments that its openings give; the details are not in the openings', () => {
    const { 'user-1': user } = JSON.parse(ledgerVector('openings.json').toString()) as Openings;
    const principal = { key: Buffer.from(user.key, 'hex'), principalId: 'user-1' };
    expect(Object.keys(user.salts)).toEqual(['2', '4']);
    for (const [seq, salt] of Object.entries(user.salts)) {
      const opening = { ...principal, salt: Buffer.from(salt, 'hex') };
      const bytes = entries[Number(seq)]!;
      expect(parseEntry(bytes)).toMatchObject({ subject: commitSubject(opening) });
      const detail = { policyVersion: 1, gpc: false, source: 'a guess', expiresAt: null };
      expect(openPersonalEntry(bytes, { ...opening, detail })).toBe(false);
    }
  });
});
