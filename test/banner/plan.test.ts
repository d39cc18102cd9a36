import { describe, expect, it } from 'vitest';
import { planWrites, prove, remember, removePending, takeBack } from '../../src/banner/plan.ts';
import { NOW } from '../support/make.ts';
import {
  AGENT,
  analytics,
  createChoice,
  createConfig,
  createPurpose,
  createRecord,
  createTerms,
  DAY,
} from './support.ts';

const key = (): string => 'key';
const plan = (wants: Record<string, boolean>, terms = createTerms()) =>
  planWrites(terms, new Map(Object.entries(wants)), key).map(({ action, purposes, gpc, policyVersion }) => ({
    action,
    purposes,
    gpc,
    policyVersion,
  }));
const common = { gpc: false, policyVersion: 3 };
const ALL = { [AGENT]: true, analytics: true };
const ALL_REFUSED = { [AGENT]: false, analytics: false };

describe('what is written', () => {
  it('accept: one grant of what was asked; reject: one denial', () => {
    expect(plan(ALL)).toEqual([{ action: 'grant', purposes: [AGENT, 'analytics'], ...common }]);
    expect(plan(ALL_REFUSED)).toEqual([{ action: 'deny', purposes: [AGENT, 'analytics'], ...common }]);
  });

  it('refusals come first: whatever breaks in between, less is granted', () => {
    const record = createRecord({ [AGENT]: createChoice() });
    expect(plan({ [AGENT]: false, analytics: true }, createTerms({ record }))).toEqual([
      { action: 'withdraw', purposes: [AGENT], ...common },
      { action: 'grant', purposes: ['analytics'], ...common },
    ]);
  });

  it('an unchanged choice is not written again, and a purpose that is not named keeps its choice', () => {
    const record = createRecord({ [AGENT]: createChoice(), analytics: createChoice({ choice: 'denied' }) });
    const terms = createTerms({ record });
    expect(plan({ [AGENT]: true, analytics: false }, terms)).toEqual([]);
    expect(plan({}, terms)).toEqual([]);
    expect(plan({ unknown: true }, terms)).toEqual([]);
    expect(plan({ analytics: true }, terms)).toEqual([
      { action: 'grant', purposes: ['analytics'], ...common },
    ]);
  });

  it('a repeated choice is written again, a refusal too', () => {
    const record = createRecord({
      [AGENT]: createChoice({ choice: 'denied', until: NOW }),
      analytics: createChoice({ version: 1 }),
    });
    expect(plan(ALL_REFUSED, createTerms({ record }))).toEqual([
      { action: 'deny', purposes: [AGENT, 'analytics'], ...common },
    ]);
  });

  it('under GPC the signal’s purposes are never written, and the others carry it', () => {
    const expected = { purposes: ['analytics'], gpc: true, policyVersion: 3 };
    expect(plan(ALL, createTerms({ gpc: true }))).toEqual([{ action: 'grant', ...expected }]);
    expect(plan(ALL_REFUSED, createTerms({ gpc: true }))).toEqual([{ action: 'deny', ...expected }]);
    const record = createRecord({ [AGENT]: createChoice() });
    expect(plan({ [AGENT]: true }, createTerms({ gpc: true, record }))).toEqual([]);
  });

  it('a yes over the signal is a write of its own, for a purpose that may be asked for alone', () => {
    const news = createPurpose({ id: 'news', gpc: 'ask' });
    const terms = createTerms({
      gpc: true,
      config: createConfig({ purposes: [createPurpose(), news, analytics] }),
    });
    const wants = new Map<string, boolean | 'over-gpc'>([
      [AGENT, 'over-gpc'],
      ['news', 'over-gpc'],
      ['analytics', true],
    ]);
    expect(planWrites(terms, wants, key)).toEqual([
      { action: 'grant', purposes: ['analytics'], policyVersion: 3, gpc: true, key: 'key' },
      { action: 'grant', purposes: ['news'], policyVersion: 3, gpc: true, overGpc: true, key: 'key' },
    ]);
    expect(plan({ news: true }, terms)).toEqual([]);
    expect(planWrites({ ...terms, gpc: false }, new Map([['news', 'over-gpc']]), key)).toEqual([]);
  });

  it('a yes over the signal is taken back as any other', () => {
    const news = createPurpose({ id: 'news', gpc: 'ask' });
    const record = createRecord({ news: createChoice({ overGpc: true }) });
    const terms = createTerms({ gpc: true, record, config: createConfig({ purposes: [news] }) });
    expect(plan({ news: false }, terms)).toMatchObject([{ action: 'withdraw', purposes: ['news'] }]);
    expect(plan({ news: true }, terms)).toEqual([]);
  });

  it('a grant can be withdrawn under a signal that the ledger has not received yet', () => {
    const record = createRecord({ [AGENT]: createChoice() });
    expect(plan({ [AGENT]: false }, createTerms({ gpc: true, record }))).toEqual([
      { action: 'withdraw', purposes: [AGENT], gpc: true, policyVersion: 3 },
    ]);
    const withdrawn = createRecord({ [AGENT]: createChoice({ choice: 'withdrawn' }) });
    expect(plan({ [AGENT]: false }, createTerms({ gpc: true, record: withdrawn }))).toEqual([]);
  });
});

describe('what is remembered', () => {
  const write = {
    action: 'grant',
    purposes: [AGENT, 'analytics'],
    policyVersion: 3,
    gpc: false,
    key: 'k',
  } as const;
  const entries = [
    { purpose: AGENT, seq: 4, hash: 'd'.repeat(64) },
    { purpose: 'analytics', seq: 5, hash: 'e'.repeat(64) },
  ];

  it('a grant, as long as its purpose says, with its entry', () => {
    const { choices } = remember(createRecord(), write, createTerms(), entries);
    expect(choices).toEqual({
      [AGENT]: {
        choice: 'granted',
        version: 3,
        at: NOW,
        until: NOW + 180 * DAY,
        proof: { seq: 4, hash: 'd'.repeat(64) },
      },
      analytics: {
        choice: 'granted',
        version: 3,
        at: NOW,
        until: NOW + 30 * DAY,
        proof: { seq: 5, hash: 'e'.repeat(64) },
      },
    });
  });

  it('a yes over the signal as one, and nothing else', () => {
    const over = { ...write, gpc: true, overGpc: true } as const;
    expect(remember(createRecord(), over, createTerms(), entries).choices[AGENT]).toMatchObject({
      overGpc: true,
    });
    expect(remember(createRecord(), write, createTerms(), entries).choices[AGENT]).not.toHaveProperty(
      'overGpc',
    );
    const back = { ...over, action: 'withdraw' } as const;
    expect(remember(createRecord(), back, createTerms(), entries).choices[AGENT]).not.toHaveProperty(
      'overGpc',
    );
  });

  it('a refusal, as long as a grant, and its proof once the ledger has it', () => {
    const refusal = { ...write, action: 'deny' } as const;
    const record = remember(createRecord({}, { pending: [refusal] }), refusal, createTerms());
    expect(record.choices[AGENT]).toMatchObject({ choice: 'denied', until: NOW + 180 * DAY, proof: null });
    const proven = removePending(prove(record, entries), refusal);
    expect(proven.choices[AGENT]).toMatchObject({ choice: 'denied', at: NOW, proof: { seq: 4 } });
    expect(proven.pending).toEqual([]);
  });

  it('a late proof does not touch a choice that came after it', () => {
    const record = createRecord({ [AGENT]: createChoice() });
    expect(prove(record, entries).choices[AGENT]).toEqual(createChoice());
  });
});

describe('a withdrawal by the record alone', () => {
  const options = { now: NOW, gpc: false, createKey: key };
  const record = createRecord({
    [AGENT]: createChoice(),
    analytics: createChoice({ version: 2, until: NOW + 5 * DAY }),
    gone: createChoice({ until: NOW }),
    no: createChoice({ choice: 'denied' }),
  });

  it('takes back what was granted, expired or not by a clock that may be ahead, and nothing else', () => {
    const done = takeBack(record, null, options);
    expect(done?.write).toEqual({
      action: 'withdraw',
      purposes: [AGENT, 'analytics', 'gone'],
      policyVersion: 3,
      gpc: false,
      key: 'key',
    });
    expect(done?.record.pending).toEqual([done?.write]);
    expect(done?.record.choices['no']).toEqual(record.choices['no']);
  });

  it('is remembered as long as the grant was to be', () => {
    const done = takeBack(record, ['analytics'], options);
    expect(done?.record.choices).toEqual({
      ...record.choices,
      analytics: { choice: 'withdrawn', version: 2, at: NOW, until: NOW + 6 * DAY, proof: null },
    });
  });

  it('is none when nothing is granted', () => {
    expect(takeBack(record, ['no', 'other'], options)).toBeNull();
    expect(takeBack(createRecord(), null, options)).toBeNull();
  });
});
