import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectError } from '../../support/expect.ts';
import { verifyTlogProof } from '../../support/log-reader.ts';
import { type Api, startApi } from './support/api.ts';
import { type Exported, leafOf, readExport } from './support/naive-log.ts';

/** Proofs as they come over HTTP, judged offline. */

const GRANTS = 97;

let api: Api;
let vkey: string;
let entries: Exported[];
let proofs: string[];

const proofOf = async (seq: number): Promise<string> => (await api.get(`/v1/consent/proofs/${seq}`)).text;

beforeAll(async () => {
  api = await startApi();
  const people = Array.from({ length: GRANTS }, (_, i) => `person-${i}`);
  await Promise.all(people.map((principalId) => api.write('grant', { principalId })));
  vkey = (await api.get('/v1/ledger/vkey')).text.trimEnd();
  entries = readExport(await api.get('/v1/ledger/export'));
  // The last one first: its checkpoint covers the others.
  const last = await proofOf(entries.length - 1);
  proofs = [...(await Promise.all(entries.slice(0, -1).map(({ seq }) => proofOf(seq)))), last];
});
afterAll(() => api.stop());

describe('a proof', () => {
  it('of every entry verifies, and holds that entry', () => {
    expect(proofs).toHaveLength(GRANTS + 2);
    for (const [seq, proof] of proofs.entries()) {
      const result = verifyTlogProof(proof, vkey);
      expect(result).toMatchObject({ ok: true, index: seq, size: GRANTS + 2 });
      if (!result.ok) continue;
      expect(result.entry.toString()).toBe(entries[seq]?.entry);
      expect(result.leafHash.equals(leafOf(result.entry.toString()))).toBe(true);
    }
  });

  it('is what a decision names', async () => {
    const { seq, hash } = await api.write('grant', { principalId: 'named' });
    const { proof } = await api.check('named');
    expect(proof).toEqual({ seq, hash });
    const result = verifyTlogProof(await proofOf(proof.seq), vkey);
    expect(result.ok && result.leafHash.toString('hex')).toBe(hash);
  });

  it('is there at once for an entry that no checkpoint covers yet', async () => {
    for (let i = 0; i < 3; i += 1) {
      const { seq } = await api.write('withdraw', { principalId: 'at-once' });
      const result = verifyTlogProof(await proofOf(seq), vkey);
      expect(result).toMatchObject({ ok: true, index: seq });
    }
  });

  it('is text/plain that nobody keeps', async () => {
    const { headers } = await api.get('/v1/consent/proofs/0');
    expect(headers['content-type']).toMatch(/^text\/plain\b/);
    expect(headers['cache-control']).toBe('no-store');
  });

  it.each(['999999', '-1', '00', '01', '1.0', '1e1', 'x', '0x1', '9007199254740993', '%00', '1%2f'])(
    'there is none of %s',
    async (seq) => {
      expectError(await api.get(`/v1/consent/proofs/${seq}`), 'not-found');
    },
  );
});
