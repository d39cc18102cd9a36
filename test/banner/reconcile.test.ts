import { describe, expect, it } from 'vitest';
import { reconcile } from '../../src/banner/reconcile.ts';
import type { Choice, ConsentRecord } from '../../src/banner/record.ts';
import type { Standing } from '../../src/banner/server.ts';
import { NOW } from '../support/make.ts';
import { createChoice, createRecord, DAY } from './support.ts';

/** The ledger's answer, as a browser takes it. */

const AT = NOW - DAY / 2;
const proof = { seq: 20, hash: 'e'.repeat(64) };

const standing = (over: Partial<Standing> = {}): Standing => ({
  ...{ purpose: 'ads', allowed: true, reason: 'granted', choice: 'granted', policyVersion: 2, definition: 9 },
  ...{ at: new Date(AT).toISOString(), expiresAt: new Date(NOW + 9 * DAY).toISOString() },
  ...{ proof, given: 'person', ...over },
});
const refused = { allowed: false, reason: 'denied', choice: 'denied', expiresAt: null } as const;

const ledgerChoice: Choice = {
  choice: 'granted',
  version: 2,
  definition: 9,
  at: AT,
  until: NOW + 9 * DAY,
  proof,
};
const denied = createChoice({ choice: 'denied' });

interface Options {
  readonly choice?: Choice | undefined;
  readonly says?: Partial<Standing>;
  readonly followsLedger?: boolean;
}

function choiceAfter({ choice, says = {}, followsLedger = true }: Options): Choice | null | undefined {
  const record = createRecord(choice ? { ads: choice } : {}, { followsLedger });
  const reconciled = reconcile(record, record, [standing(says)]);
  return reconciled === null ? null : reconciled.choices['ads'];
}

describe('a browser that is joined with an account', () => {
  it.each<[what: string, options: Options, expected: Choice | null | undefined]>([
    ['takes a grant over', {}, ledgerChoice],
    ['takes a refusal over', { says: refused }, { ...ledgerChoice, choice: 'denied', until: 0 }],
    ['takes a grant over for an older refusal', { choice: denied }, ledgerChoice],
    ['takes a newer grant over for its own', { choice: createChoice() }, ledgerChoice],
    ['takes a yes over GPC over as such', { says: { overGpc: true } }, { ...ledgerChoice, overGpc: true }],
    [
      'keeps its choice where the entry is the same',
      { choice: { ...ledgerChoice, at: AT + 5 } },
      { ...ledgerChoice, at: AT + 5 },
    ],
    [
      'keeps a refusal that is not sent yet',
      { choice: { ...denied, proof: null } },
      { ...denied, proof: null },
    ],
    [
      'takes an ended grant over as ended',
      { says: { allowed: false, reason: 'expired', expiresAt: null } },
      { ...ledgerChoice, until: 0, ended: 'expired' },
    ],
    ['takes no grant of a machine over', { says: { given: 'automation' } }, undefined],
    [
      'is asked where nobody has answered',
      { says: { allowed: false, reason: 'never-asked', choice: null } },
      undefined,
    ],
    ['is asked after a GPC signal elsewhere', { says: { allowed: false, reason: 'gpc-opt-out' } }, undefined],
    [
      'refuses what an erased account had refused',
      { choice: createChoice(), says: { allowed: false, reason: 'withdrawn', expiresAt: null } },
      { ...ledgerChoice, choice: 'withdrawn', until: 0 },
    ],
    [
      'keeps its refusal when the account was erased',
      { choice: denied, says: { ...refused, reason: 'erased', proof: { seq: 7, hash: 'a'.repeat(64) } } },
      denied,
    ],
    [
      'starts as somebody new when it was erased',
      { choice: denied, says: { allowed: false, reason: 'erased', choice: null } },
      null,
    ],
  ])('%s', (_what, options, expected) => {
    expect(choiceAfter(options)).toEqual(expected);
  });
});

describe('a browser alone', () => {
  it.each<[what: string, choice: Choice | undefined]>([
    ['keeps its refusal', denied],
    ['asks for a purpose without an answer', undefined],
  ])('%s', (_what, choice) => {
    expect(choiceAfter({ choice, followsLedger: false })).toEqual(choice);
  });
});

it('a choice that was made while the ledger was asked is newer than its answer', () => {
  const sentRecord: ConsentRecord = createRecord({}, { followsLedger: true });
  expect(
    reconcile({ ...sentRecord, choices: { ads: denied } }, sentRecord, [standing()])?.choices['ads'],
  ).toBe(denied);
});
