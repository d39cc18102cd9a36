import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, PURPOSE, startApi } from './support/api.ts';

/** One person whatever keyboard their name was typed on: principalIds are compared in Unicode NFC (ADR 0030). */

const NFC = 'Zo\u00eb \u1e69';
const NFD = NFC.normalize('NFD');
const HALF = 'Zo\u00eb s\u0323\u0307';
const SWAPPED = 'Zo\u00eb s\u0307\u0323';
const SPELLINGS = [NFC, NFD, HALF, SWAPPED];

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

describe('a principalId', () => {
  it('has spellings that differ', () => {
    expect(new Set(SPELLINGS).size).toBe(4);
    expect(new Set(SPELLINGS.map((text) => text.normalize('NFC')))).toEqual(new Set([NFC]));
  });

  it.each([
    ['NFD', NFD],
    ['half-composed', HALF],
    ['marks in another order', SWAPPED],
  ])('that is withdrawn in another spelling, %s, leaves no grant live', async (_name, other) => {
    await api.write('grant', { principalId: NFC });
    expect(await api.check(other)).toMatchObject({ allowed: true });
    await api.write('withdraw', { principalId: other });
    expect(await api.check(NFC)).toMatchObject({ allowed: false, reason: 'withdrawn' });
  });

  it('is one in a batch, in the state and in the history, and is echoed in NFC', async () => {
    const { seq } = await api.write('grant', { principalId: NFD });
    const checks = SPELLINGS.map((principalId, i) => ({
      id: String(i),
      principalId,
      purpose: PURPOSE,
    }));
    const batch = await api.post('/v1/consent/can-process/batch', { checks });
    expect((batch.json() as { results: readonly object[] }).results).toMatchObject(
      checks.map(() => ({ allowed: true, proof: { seq } })),
    );
    const state = await api.post('/v1/consent/state', { principalId: NFD });
    expect(state.json()).toMatchObject({ principalId: NFC, purposes: [{ allowed: true }] });
    const history = await api.post('/v1/consent/history', { principalId: NFD });
    const { events } = history.json() as { events: readonly { readonly seq: number }[] };
    expect(history.json()).toMatchObject({ principalId: NFC });
    expect(events[0]).toMatchObject({ seq, type: 'consent.granted' });
  });

  it('is one in a session, which reaches what every spelling wrote, and erases it', async () => {
    await api.write('grant', { principalId: HALF });
    const opened = await api.post('/v1/sessions', { principalId: NFD });
    expect(opened.json()).toMatchObject({ principalId: NFC });
    const { token } = opened.json() as { token: string };
    for (const principalId of SPELLINGS) {
      const state = await api.post('/v1/consent/state', { principalId }, token);
      expect(state.json()).toMatchObject({ purposes: [{ allowed: true }] });
    }
    expect((await api.post('/v1/principals/erase', {}, token)).status).toBe(200);
    for (const principalId of SPELLINGS)
      expect(await api.check(principalId)).toMatchObject({ allowed: false, reason: 'erased' });
  });
});
