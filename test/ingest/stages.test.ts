import { afterEach, describe, expect, it, vi } from 'vitest';
import { STAGES } from '../../src/ingest/pipeline.ts';
import { makeReceipt } from '../support/make.ts';
import { run, type World } from './support.ts';

/** The table of stages against what runs. */

type Name = keyof typeof STAGES;
const NAMES = Object.keys(STAGES) as Name[];
const PROOF = { principalId: 'u-1', proof: { seq: 41, hash: 'a'.repeat(64) } };
const PROVEN: World = {
  tenant: { needsProof: true },
  proven: ['device-identification'],
  plaintext: { consent: makeReceipt(PROOF) },
};

/** Which stages a bundle ran through, in the order of their first calls. */
async function stagesOf(world: World): Promise<{ ran: readonly string[]; reason: string }> {
  const ran = new Set<string>();
  for (const name of NAMES) {
    const stage = STAGES[name] as { run: (...values: unknown[]) => unknown };
    const { run: original } = stage;
    vi.spyOn(stage, 'run').mockImplementation((...values) => {
      ran.add(name);
      return original(...values);
    });
  }
  const { response } = await run(world);
  return { ran: [...ran], reason: response.reason };
}

afterEach(() => vi.restoreAllMocks());

describe('the stages of ingest', () => {
  it('run in the order of the table', async () => {
    expect(await stagesOf(PROVEN)).toEqual({ ran: NAMES, reason: 'ok' });
  });

  it.each<[string, World, string, Name]>([
    [
      'that does not open',
      { bundle: { kid: 'acme', iv: 'AAAA', ct: 'AAAA', epk: 'AAAA' } },
      'decrypt-failed',
      'open',
    ],
    [
      'of no consent',
      { plaintext: { consent: makeReceipt({ purposes: [] }) } },
      'consent-missing',
      'consent gate',
    ],
    ['of no proof', { ...PROVEN, proven: [] }, 'consent-missing', 'consent proof'],
    ['that was seen', { ...PROVEN, outcome: 'replay' }, 'replay', 'record'],
    ['of a tenant that went', { ...PROVEN, outcome: 'gone' }, 'decrypt-failed', 'record'],
  ])('end for a bundle %s, as the table says', async (_what, world, reason, last) => {
    expect(STAGES[last].refuses).toContain(reason);
    expect(await stagesOf(world)).toEqual({ ran: NAMES.slice(0, NAMES.indexOf(last) + 1), reason });
  });
});
