import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { flipBit } from '../../ledger/support.ts';
import { expectError } from '../../support/expect.ts';
import { verifyTlogProof } from '../../support/log-reader.ts';
import { describeWithTool } from '../../support/tools.ts';
import { type Api, startApi } from './support/api.ts';
import { audit, missingAuditor } from './support/auditor.ts';
import { type Exported, leafOf, readCheckpoint, readExport } from './support/naive-log.ts';

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

const why = (proof: string, key = vkey): string => {
  const result = verifyTlogProof(proof, key);
  return result.ok ? 'ok' : result.why;
};

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

describe('a proof is worth nothing', () => {
  it('with one bit changed, wherever it is', () => {
    const bytes = Buffer.from(proofs[40] ?? '');
    const passed: number[] = [];
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      if (why(flipBit(bytes, bit).toString()) === 'ok') passed.push(bit);
    }
    expect(passed).toEqual([]);
  });

  it('with a line more, less, twice or moved', () => {
    const lines = (proofs[40] ?? '').split('\n');
    const changed = lines.flatMap((line, i) => [
      lines.toSpliced(i, 1),
      // A note may be signed twice by one key.
      ...(line.startsWith('\u2014 ') ? [] : [lines.toSpliced(i, 0, line)]),
      lines.toSpliced(i, 1, lines[i + 1] ?? '', line),
    ]);
    const same = lines.join('\n');
    const passed = changed
      .map((text) => text.join('\n'))
      .filter((text) => text !== same && why(text) === 'ok');
    expect(passed).toEqual([]);
  });

  it('under the key or the checkpoint of another log', async () => {
    const { foreign } = api.keys;
    const otherKey = (await api.get('/v1/ledger/vkey', foreign)).text.trimEnd();
    const otherCheckpoint = (await api.get('/v1/ledger/checkpoint', foreign)).text;
    const [head] = (proofs[0] ?? '').split('\n\n');
    expect(why(proofs[0] ?? '', otherKey)).toBe('not-signed');
    expect(why(`${head}\n\n${otherCheckpoint}`)).toBe('not-signed');
    expect(why(`${head}\n\n${otherCheckpoint}`, otherKey)).toBe('not-included');
  });

  it('with another checkpoint of the same log, or for another entry', async () => {
    await api.write('grant', { principalId: 'grows' });
    const seq = (await api.check('nobody')).proof.seq;
    const later = await proofOf(seq);
    const checkpoint = later.slice(later.indexOf('\n\n') + 2);
    expect(readCheckpoint(checkpoint).size).toBeGreaterThan(GRANTS + 2);
    const [head = ''] = (proofs[40] ?? '').split('\n\n');
    expect(why(`${head}\n\n${checkpoint}`)).toBe('not-included');
    expect(why((proofs[40] ?? '').replace('\nindex 40\n', '\nindex 41\n'))).toBe('not-included');
  });
});

describeWithTool('an auditor with Python and openssl', missingAuditor(), () => {
  it('accepts every proof that came over HTTP', async () => {
    const said = await audit(proofs, vkey);
    expect(said).toHaveLength(proofs.length);
    for (const [seq, text] of said.entries()) {
      const { hash, entry } = entries[seq] ?? { hash: '', entry: '' };
      expect(text).toBe(`OK entry ${seq} of ${GRANTS + 2} leaf ${hash}\n${entry}\n`);
    }
  });

  it('refuses one that was changed', async () => {
    const good = proofs[40] ?? '';
    const other = (await api.get('/v1/ledger/vkey', api.keys.foreign)).text;
    const changed = [
      good.replace('\nindex 40\n', '\nindex 41\n'),
      good.replace(/(extra \w+)(\w)/, (_, head: string, last: string) => head + (last === 'A' ? 'B' : 'A')),
      good.replace(`\n${GRANTS + 2}\n`, `\n${GRANTS + 1}\n`),
    ];
    expect(changed).not.toContain(good);
    for (const text of await audit(changed, vkey)) expect(text).toMatch(/^REFUSED /);
    expect(await audit([good], other)).toEqual([expect.stringMatching(/^REFUSED /)]);
  });
});
