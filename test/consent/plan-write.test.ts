import { describe, expect, it } from 'vitest';
import { type PurposeTerms, planWrite, type WriteCommand } from '../../src/consent/plan-write.ts';
import { NOW } from '../support/make.ts';

const DAY_MS = 86_400_000;
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
  it.each([
    ['grant', 'granted'],
    ['deny', 'denied'],
    ['withdraw', 'withdrawn'],
  ] as const)('%s is recorded as %s', (action, choice) => {
    expect(plan({ action }).map((entry) => entry.choice)).toEqual([choice]);
  });

  it('one entry a purpose, in the order asked for, each with the days of its own purpose', () => {
    const planned = plan({ purposes: ['orders', 'ads'], source: 'session' });
    expect(planned).toEqual([
      {
        purpose: 'orders',
        choice: 'granted',
        detail: { policyVersion: 4, gpc: false, source: 'session', expiresAt: NOW + 365 * DAY_MS },
      },
      {
        purpose: 'ads',
        choice: 'granted',
        detail: { policyVersion: 4, gpc: false, source: 'session', expiresAt: NOW + DAY_MS },
      },
    ]);
  });

  it.each(['deny', 'withdraw'] as const)('%s does not expire', (action) => {
    expect(plan({ action })[0]?.detail.expiresAt).toBeNull();
  });

  it('a grant under GPC is recorded as the grant it was', () => {
    const [entry] = plan({ gpc: true });
    expect(entry).toMatchObject({ choice: 'granted', detail: { gpc: true, expiresAt: NOW + DAY_MS } });
  });

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

  it.each([false, undefined])('without the signal (%s) a denial is a denial', (gpc) => {
    expect(plan({ action: 'deny', gpc })[0]).toMatchObject({ choice: 'denied', detail: { gpc: false } });
  });

  it('plans nothing for no purposes', () => {
    expect(plan({ purposes: [] })).toEqual([]);
  });
});
