import { describe, expect, it } from 'vitest';
import { type PurposeTerms, planWrite, type WriteCommand } from '../../src/consent/plan-write.ts';
import { NOW } from '../support/make.ts';

const terms: Readonly<Record<string, PurposeTerms>> = {
  ads: { gpc: 'opt-out', ttlDays: 1 },
  orders: { gpc: 'ignore', ttlDays: 365 },
  news: { gpc: 'ask', ttlDays: 1 },
};
const termsOf = (purpose: string): PurposeTerms => terms[purpose]!;

function plan(over: Partial<WriteCommand>) {
  const command: WriteCommand = {
    action: 'grant',
    purposes: ['ads'],
    policyVersion: 4,
    gpc: undefined,
    source: 'backend',
    ...over,
  };
  return planWrite(command, termsOf, NOW);
}

describe('planWrite', () => {
  it('a denial by a GPC signal is recorded as the signal, where the purpose heeds it', () => {
    const planned = plan({ action: 'deny', gpc: true, purposes: ['ads', 'orders', 'news'] });
    expect(planned.map(({ choice }) => choice)).toEqual(['gpc-opt-out', 'denied', 'gpc-opt-out']);
    expect(planned.every(({ detail }) => detail.gpc)).toBe(true);
  });

  it('a yes over the signal says so in its entry, and no other entry has the word', () => {
    const [over] = plan({ purposes: ['news'], gpc: true, overGpc: true });
    expect(over).toMatchObject({ choice: 'granted', detail: { gpc: true, overGpc: true } });
    for (const overGpc of [false, undefined])
      expect(plan({ gpc: true, overGpc })[0]?.detail).not.toHaveProperty('overGpc');
  });

  it('a withdrawal stays the person’s own under GPC', () => {
    expect(plan({ action: 'withdraw', gpc: true })[0]).toMatchObject({ choice: 'withdrawn' });
  });
});
