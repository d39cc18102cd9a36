import type { Knex } from 'knex';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { encodeFrontier } from '../../../src/ledger/merkle.ts';
import { createNoteSigner } from '../../../src/ledger/note.ts';
import { DAY } from '../../../src/lib/clock.ts';
import { NOW } from '../../support/make.ts';
import type { LogNode, Logs } from './log-node.ts';

const STATE = 'state-changed';
const OPENING = 'opening-changed';
const POLICY = 'policy-changed';
const ENTRY = 'entry-changed';
const NOT_EXTENDED = 'checkpoint-not-extended';

const LOG_TABLES = [
  'ledger_entries',
  'ledger_heads',
  'checkpoints',
  'consent_principals',
  'consent_openings',
  'consent_state',
  'consent_policies',
  'purposes',
];

/** One row of the database was changed, added or taken away: verify names what it was. */
export function tamperedRows({ createLog, other, write }: Logs): void {
  type Tamper = (tx: Knex.Transaction, kid: string) => PromiseLike<unknown>;
  const update =
    (table: string, key: object, row: object): Tamper =>
    (tx, kid) =>
      tx(table)
        .where({ kid, ...key })
        .update(row);
  const insert =
    (table: string, row: object): Tamper =>
    (tx, kid) =>
      tx(table).insert({ kid, ...row });
  const remove =
    (table: string, key: object = {}): Tamper =>
    (tx, kid) =>
      tx(table)
        .where({ kid, ...key })
        .delete();
  const BERT = { principal: 'ref-bert' };
  const OTHER_DETAIL = '{"policyVersion":1,"gpc":false,"source":"backend","expiresAt":null}';
  const NOBODY = { principal: 'x', purpose: 'ads', choice: 'granted', policy_version: 1, expires_at: null };
  const OTHER_TREE = encodeFrontier({ size: 6, hashes: [Buffer.alloc(32), Buffer.alloc(32)] });
  const OTHER_VKEY = createNoteSigner('gpd.example/ledger/x', Buffer.alloc(32, 1)).vkey;
  const earlierState: Tamper = async (tx, kid) => {
    const [hash] = (await tx('ledger_entries').where({ kid, seq: 3 }).pluck('hash')) as string[];
    const granted = { choice: 'granted', expires_at: NOW + 1000, seq: 3, hash };
    await tx('consent_state').where({ kid, seq: 4 }).update(granted);
  };
  const noTrace: Tamper = async (tx, kid) => {
    for (const table of ['consent_openings', 'consent_state']) await remove(table, { seq: 5 })(tx, kid);
    await remove('consent_principals', BERT)(tx, kid);
  };
  const people: readonly [title: string, tamper: Tamper, ...codes: string[]][] = [
    ['a withdrawal that reads as a grant', update('consent_state', { seq: 4 }, { choice: 'granted' }), STATE],
    ['a state of an earlier entry', earlierState, STATE],
    ['a longer grant', update('consent_state', { seq: 5 }, { expires_at: NOW + DAY }), STATE],
    ['an end that is no time', update('consent_state', { seq: 5 }, { expires_at: 9e15 }), STATE],
    ['a state that is gone', remove('consent_state', { seq: 4 }), STATE],
    ['a state that nobody said', insert('consent_state', { ...NOBODY, at: NOW, seq: 5, hash: '00' }), STATE],
    ['an erasure that never was', update('consent_principals', BERT, { erased_at: NOW }), STATE],
    ['a key that is gone', update('consent_principals', BERT, { wrapped_key: null }), OPENING, STATE],
    ['a changed opening', update('consent_openings', { seq: 4 }, { detail: OTHER_DETAIL }), OPENING, STATE],
    [
      'an opening of another choice',
      update('consent_openings', { seq: 4 }, { choice: 'granted' }),
      OPENING,
      STATE,
    ],
    ['an opening that is no JSON', update('consent_openings', { seq: 4 }, { detail: '{' }), OPENING, STATE],
    ['an opening of nothing', update('consent_openings', { seq: 4 }, { detail: 'null' }), OPENING, STATE],
    ['an opening at no time', update('consent_openings', { seq: 4 }, { at: 9e15 }), OPENING, STATE],
    ['an opening of another person', update('consent_openings', { seq: 4 }, BERT), OPENING, STATE],
    ['an opening that is gone, with its state', noTrace, OPENING],
    ['an opening of no entry', update('consent_openings', { seq: 5 }, { seq: 99 }), OPENING, STATE],
    ['another text of a policy', update('consent_policies', {}, { text: 'We take.' }), POLICY],
    ['a policy that asks nobody again', update('consent_policies', {}, { material: false }), POLICY],
    ['a policy that is gone', remove('consent_policies'), POLICY],
    [
      'a policy that was never published',
      insert('consent_policies', { version: 2, text: 'x', sha256: 'y', material: true, published_at: NOW }),
      POLICY,
    ],
    ['another purpose', update('purposes', {}, { gpc: 'ignore' }), 'purpose-changed'],
    ['a purpose that is gone', remove('purposes'), 'purpose-changed'],
    ['another key', update('ledger_heads', {}, { vkey: OTHER_VKEY }), 'vkey-changed'],
    ['a changed entry', update('ledger_entries', { seq: 4 }, { entry: '{}' }), ENTRY],
    ['a frontier of another tree', update('ledger_heads', {}, { frontier: OTHER_TREE }), NOT_EXTENDED, ENTRY],
    ['a size of its own', update('ledger_heads', {}, { size: 5 }), ENTRY],
    ['no checkpoint beside it', remove('checkpoints'), 'checkpoint-missing'],
    ['a checkpoint of nobody', insert('checkpoints', { size: 4, at: NOW, note: 'forged' }), NOT_EXTENDED],
  ];

  const kid = 'tampered';
  let node: LogNode;
  let rows: (readonly [table: string, rows: readonly object[]])[];
  beforeAll(async () => {
    node = await createLog(kid);
    rows = await Promise.all(
      LOG_TABLES.map(async (table) => [table, await other.read(table).where({ kid })] as const),
    );
    expect(await node.codes()).toEqual([]);
  });
  afterEach(() =>
    write(async (tx) => {
      for (const table of LOG_TABLES) await remove(table)(tx, kid);
      for (const [table, before] of rows) await tx(table).insert(before);
    }),
  );

  it.each(people)('shows %s', async (_title, tamper, ...codes) => {
    await write((tx) => tamper(tx, kid));
    expect(await node.codes()).toEqual(codes);
  });
}
