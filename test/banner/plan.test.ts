import { describe, expect, it } from 'vitest';
import {
  addProofs,
  planWrites,
  rememberWrite,
  removePending,
  withdrawStored,
} from '../../src/banner/plan.ts';
import type { ConsentRecord } from '../../src/banner/record.ts';
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
const news = createPurpose({ id: 'news', gpc: 'ask' });
const terms = (choices: ConsentRecord['choices'], gpc = false) =>
  createTerms({
    gpc,
    record: createRecord(choices),
    config: createConfig({ purposes: [createPurpose(), analytics, news] }),
  });
const granted = { [AGENT]: createChoice() };
const refused = createChoice({ choice: 'denied' });
const over = createChoice({ overGpc: true });
const yes: Wants = { [AGENT]: true, analytics: true };
const no: Wants = { [AGENT]: false, analytics: false };
const OVER: Wants = { [AGENT]: 'over-gpc', analytics: true, news: 'over-gpc' };

type Wants = Readonly<Record<string, boolean | 'over-gpc'>>;

describe('what is written', () => {
  it.each<[what: string, choices: ConsentRecord['choices'], wants: Wants, writes: string[], gpc?: true]>([
    ['accept is one grant', {}, yes, [`grant ${AGENT},analytics`]],
    ['reject is one denial', {}, no, [`deny ${AGENT},analytics`]],
    // Whatever breaks in between, less is granted.
    ['refusals come first', granted, { ...yes, [AGENT]: false }, [`withdraw ${AGENT}`, 'grant analytics']],
    ['not what is unchanged', { ...granted, analytics: refused }, { ...yes, analytics: false }, []],
    ['not what is not named, or not a purpose', granted, { unknown: true }, []],
    [
      'a repeated choice, a refusal too',
      {
        [AGENT]: createChoice({ choice: 'denied', at: NOW - 183 * DAY }),
        analytics: createChoice({ version: 1 }),
      },
      no,
      [`deny ${AGENT},analytics`],
    ],
    ['under GPC no grant that it overrules', {}, yes, ['grant analytics'], true],
    ['under GPC no denial that it has made', {}, no, ['deny analytics'], true],
    ['a withdrawal before the ledger knows', granted, { [AGENT]: false }, [`withdraw ${AGENT}`], true],
    ['no second one', { [AGENT]: createChoice({ choice: 'withdrawn' }) }, { [AGENT]: false }, [], true],
    // A write of its own, for a purpose that may be asked for alone.
    ['a yes over the signal', {}, OVER, ['grant analytics', 'grant news over'], true],
    ['no such yes without the signal', {}, { news: 'over-gpc' }, []],
    ['a plain yes is none', {}, { news: true }, [], true],
    ['it is taken back as any other', { news: over }, { news: false }, ['withdraw news'], true],
    ['and not given twice', { news: over }, { news: true }, [], true],
  ])('%s', (_what, choices, wants, writes, gpc = undefined) => {
    const planned = planWrites(terms(choices, gpc), new Map(Object.entries(wants)), key);
    // A grant names what was shown; a refusal is one in whatever words.
    for (const { action, purposes, definitions } of planned)
      expect(definitions).toEqual(
        action === 'grant' ? Object.fromEntries(purposes.map((id) => [id, 1])) : undefined,
      );
    const lines = planned.map(
      ({ action, purposes, overGpc }) => `${action} ${purposes.join()}${overGpc ? ' over' : ''}`,
    );
    expect(lines).toEqual(writes);
    for (const one of planned) expect(one).toMatchObject({ gpc: gpc === true, policyVersion: 3, key: 'key' });
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
    const { choices } = rememberWrite(createRecord(), write, createTerms(), entries);
    const grant = { choice: 'granted', version: 3, definition: 1, at: NOW };
    const [first, second] = entries.map(({ seq, hash }) => ({ seq, hash }));
    expect(choices).toEqual({
      [AGENT]: { ...grant, until: NOW + 180 * DAY, proof: first },
      analytics: { ...grant, until: NOW + 30 * DAY, proof: second },
    });
  });

  it('a yes over the signal as one, and nothing else', () => {
    const yes = { ...write, gpc: true, overGpc: true } as const;
    const saysOver = (answer: typeof write | typeof yes, action: 'grant' | 'withdraw' = 'grant') =>
      rememberWrite(createRecord(), { ...answer, action }, createTerms(), entries).choices[AGENT]?.overGpc;
    expect([saysOver(yes), saysOver(write), saysOver(yes, 'withdraw')]).toEqual([true, undefined, undefined]);
  });

  it('a refusal, as long as a grant, and its proof once the ledger has it', () => {
    const refusal = { ...write, action: 'deny' } as const;
    const record = rememberWrite(createRecord({}, { pending: [refusal] }), refusal, createTerms());
    expect(record.choices[AGENT]).toMatchObject({ choice: 'denied', until: NOW + 180 * DAY, proof: null });
    const proven = removePending(addProofs(record, entries), refusal);
    expect(proven.choices[AGENT]).toMatchObject({ choice: 'denied', at: NOW, proof: { seq: 4 } });
    expect(proven.pending).toEqual([]);
  });

  it('a late proof does not touch a choice that came after it', () => {
    const record = createRecord({ [AGENT]: createChoice() });
    expect(addProofs(record, entries).choices[AGENT]).toEqual(createChoice());
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
    const withdrawn = withdrawStored(record, null, options);
    expect(withdrawn?.pending).toEqual([
      {
        action: 'withdraw',
        purposes: [AGENT, 'analytics', 'gone'],
        policyVersion: 3,
        gpc: false,
        key: 'key',
      },
    ]);
    expect(withdrawn?.choices['no']).toEqual(record.choices['no']);
  });

  it('is remembered as long as the grant was to be', () => {
    const withdrawn = withdrawStored(record, ['analytics'], options);
    expect(withdrawn?.choices).toEqual({
      ...record.choices,
      analytics: {
        choice: 'withdrawn',
        version: 2,
        definition: 1,
        at: NOW,
        until: NOW + 6 * DAY,
        proof: null,
      },
    });
  });

  it('is none when nothing is granted', () => {
    expect(withdrawStored(record, ['no', 'other'], options)).toBeNull();
    expect(withdrawStored(createRecord(), null, options)).toBeNull();
  });
});
