import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import sqlite3 from 'sqlite3';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { tablesWhere } from '../../../src/rights/person-map.ts';
import { ERASURE_SCOPES } from '../../../src/schema/rights.ts';
import { tempDir } from '../../support/command.ts';
import { KID, ORIGIN, REASON } from '../../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../../support/expect.ts';
import { desktopChrome } from '../../support/samples.ts';
import { apiKey, keepSummaries, type Rights, startRights, type Visit } from '../support/rights.ts';

/**
 * An erasure leaves no row and no byte: the rows of one person with something in every store, and every id in every file of the data
 * directory, are looked for. A new table has to be named here.
 */

let rights: Rights;
let secret: string;
beforeAll(async () => {
  rights = await startRights();
  secret = await apiKey(rights, 'secret');
  await keepSummaries(rights);
  await rights.gpd.json(['webhooks', 'add', KID, 'http://127.0.0.1:9/x', '--allow-private']);
  await vi.waitFor(async () => {
    await rights.visit();
    expect(await rights.sql('SELECT 1 FROM webhook_outbox')).not.toEqual([]);
  }, SEEN_WITHIN);
});
afterAll(() => rights.stop());

interface Receipt {
  readonly receiptId: string;
  readonly scopes: readonly { readonly scope: string; readonly action: string; readonly count: number }[];
  readonly incomplete: boolean;
  readonly [more: string]: unknown;
}

const filesOf = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile());

/** @returns each id that a file contains in the clear, with the path of the file */
function found(ids: readonly string[], { gpd } = rights): string[] {
  return filesOf(gpd.dataDir).flatMap((path) => {
    const bytes = readFileSync(path);
    return ids.filter((id) => bytes.includes(id)).map((id) => `${id} in ${path}`);
  });
}

const subject = (visit: Visit, sub: string, at = rights): Promise<string> =>
  at.as({ gpd_role: 'subject', sub, gpd_visitor: visit.visitorId });

interface Person {
  readonly visit: Visit;
  readonly first: Visit;
  readonly contestId: string;
  readonly durable: string;
  readonly principal: string;
  readonly ids: readonly string[];
  readonly token: string;
  readonly sub: string;
}

async function good<T = Receipt>(path: string, body: object, token: string, at = rights, headers = {}) {
  const reply = await at.call(path, body, token, headers);
  expect({ path, text: reply.text, isGood: reply.status < 300 }).toMatchObject({ isGood: true });
  return reply.json() as T;
}

/** Somebody with two visits, a ruling, an open contest, a link and consent. */
async function createPerson(sub: string, at = rights, key = secret): Promise<Person> {
  const device = Buffer.from(sub.padEnd(16, '.')).toString('hex').slice(0, 32);
  const first = await at.visit({ device, bot: true });
  const visit = await at.visit({ device, bot: true });
  const token = await subject(visit, sub, at);
  const filing = { requestId: first.requestId, statement: `by ${sub}` };
  const { contestId } = await good<{ contestId: string }>('/privacy/contest', filing, token, at);
  const reviewer = await at.as({ gpd_role: 'reviewer', sub: 'rita' });
  const ruling = { contestId, outcome: 'overturned', reason: REASON };
  await good('/privacy/contest/resolve', ruling, reviewer, at);
  await good('/privacy/contest', { requestId: visit.requestId }, token, at);
  const session = await good<{ token: string }>('/v1/sessions', { principalId: sub }, key, at);
  const browser = { cookie: `gp_session=${visit.session}`, origin: ORIGIN };
  await good('/v1/principals/link', { token: visit.token }, session.token, at, browser);
  const grant = { principalId: sub, purposes: ['device-identification'] };
  await good('/v1/consent/grant', grant, key, at, { 'idempotency-key': `once-${sub}` });
  const [row] = await at.sql(
    `SELECT durable, principal FROM decisions JOIN links USING (request_id) WHERE request_id = '${visit.requestId}'`,
  );
  const { durable, principal } = row as { durable: string; principal: string };
  const ids = [visit.visitorId, first.requestId, visit.requestId, contestId, durable];
  return { visit, first, contestId, durable, principal, ids, token, sub };
}

const actions = (receipt: Receipt): Record<string, string> =>
  Object.fromEntries(receipt.scopes.map(({ scope, action }) => [scope, action]));

describe('a subject’s erasure', () => {
  it('takes every store, and leaves no byte of any id in any file', async () => {
    const person = await createPerson('person-one');
    // The negative control: the same search finds them before.
    expect(found(person.ids).length).toBeGreaterThanOrEqual(person.ids.length);
    const receipt = await good('/privacy/erase', {}, person.token);
    expect(receipt.scopes.map(({ scope }) => scope)).toEqual([...ERASURE_SCOPES]);
    expect(actions(receipt)).toEqual({
      sightings: 'erased',
      'visitor-index': 'erased',
      decisions: 'erased',
      contests: 'erased',
      override: 'erased',
      links: 'erased',
      'signal-summaries': 'erased',
      'network-marks': 'erased',
      credentials: 'none',
      consent: 'retained',
      backups: 'none',
      storage: 'erased',
    });
    expect(receipt).toMatchObject({ tenant: KID, requestedBy: 'subject', incomplete: false });
    expect(found(person.ids)).toEqual([]);
    expect(found([person.sub])).toEqual([]);
    for (const id of [...person.ids, person.sub]) expect(JSON.stringify(receipt)).not.toContain(id);
    // A tombstone stands outside the database, and names nobody.
    const path = join(rights.gpd.dataDir, 'erasures.log');
    expect(statSync(path).mode & 0o077).toBe(0);
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    const line = lines.find((text) => text.includes(receipt.receiptId)) ?? '{}';
    const refs = [{ kind: 'durable' }, { kind: 'request' }];
    expect(JSON.parse(line)).toMatchObject({ v: 1, tenant: KID, refs });

    const again = await good('/privacy/erase', {}, person.token);
    const { consent, ...otherActions } = actions(again);
    expect(new Set(Object.values(otherActions))).toEqual(new Set(['none']));
    // The evidence of consent is held still, and the receipt does not deny it.
    expect(consent).toBe('retained');
    expect(again.incomplete).toBe(false);
    expectError(
      await rights.call('/privacy/contest', { requestId: person.visit.requestId }, person.token),
      'no-such-decision',
    );
  });

  it('leaves no byte and a whole log under load, of ten people among others', async () => {
    const people: Person[] = [];
    for (let i = 0; i < 10; i += 1) people.push(await createPerson(`loaded-${i}`));
    let running = true;
    let visits = 0;
    const load = [1, 2, 3].map(async () => {
      while (running) {
        const { answer } = await rights.visit();
        expect(answer.reason).toBe('ok');
        visits += 1;
      }
    });
    // A busy machine may answer 503, which says that nothing was erased.
    const erased = people.map(({ token }) =>
      expect.poll(async () => (await rights.call('/privacy/erase', {}, token)).status).toBe(200),
    );
    await Promise.all(erased);
    running = false;
    await Promise.all(load);
    expect(visits).toBeGreaterThan(2);
    // On a busy machine the visits may have kept a search from its end, and the next one comes after a minute.
    await expect.poll(async () => (await rights.gpd.cli(['erase', 'resume', '--json'])).code).toBe(0);
    expect(await rights.sql('SELECT receipt_id FROM erasures WHERE files_clean_at IS NULL')).toEqual([]);
    expect(found(people.flatMap(({ ids }) => ids))).toEqual([]);
    // Erased verdicts of sealed hours are missed by nobody.
    expect(await rights.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
  });
});

describe('what people write', () => {
  it('stands in no file in the clear, and is read by the subject and by staff', async () => {
    const visit = await rights.visit({ bot: true });
    const token = await subject(visit, 'writer');
    const body = { requestId: visit.requestId, statement: 'I walk with a screen reader.' };
    const { contestId } = await good<{ contestId: string }>('/privacy/contest', body, token);
    const reason = 'The reader of the screen explains what was seen here.';
    const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita' });
    await good('/privacy/contest/resolve', { contestId, outcome: 'overturned', reason }, reviewer);
    expect(found([body.statement, reason])).toEqual([]);
    const { contests } = await good<{ contests: object[] }>('/privacy/dsar', {}, token);
    expect(contests).toMatchObject([{ statement: body.statement, reason }]);
    const shown = await rights.gpd.json(['contests', 'show', contestId]);
    expect(shown).toMatchObject({ statement: body.statement, reason });
  });
});

describe('a dpo’s erasure', () => {
  const dpo = (): Promise<string> => rights.as({ gpd_role: 'dpo', sub: 'dora' });

  it.each([
    ['visitorId', (person: Person) => ({ visitorId: person.visit.visitorId })],
    ['requestId', (person: Person) => ({ requestId: person.visit.requestId })],
    ['durableId', (person: Person) => ({ durableId: `${KID}|${person.durable}` })],
  ] as const)('by %s reaches the device', async (name, target) => {
    const person = await createPerson(`by-${name}`);
    const receipt = await good('/privacy/erase', target(person), await dpo());
    expect(receipt).toMatchObject({ requestedBy: 'dpo', incomplete: false });
    expect(actions(receipt)).toMatchObject({ decisions: 'erased', contests: 'erased', override: 'erased' });
    expect(found(person.ids)).toEqual([]);
  });

  it('by principalId reaches the linked requests and shreds the consent', async () => {
    const person = await createPerson('by-principal');
    const receipt = await good('/privacy/erase', { principalId: person.sub }, await dpo());
    expect(actions(receipt)).toMatchObject({ decisions: 'erased', links: 'erased', consent: 'erased' });
    expect(found([person.visit.requestId])).toEqual([]);
    const check = { principalId: person.sub, purpose: 'device-identification' };
    const answer = (await rights.call('/v1/consent/can-process', check, secret)).json();
    expect(answer).toMatchObject({ allowed: false, reason: 'erased' });
  });
});

describe('who else there is', () => {
  it('a request whose id other people may share is erased and exported alone', async () => {
    const signals = desktopChrome('e'.repeat(32));
    Object.assign(signals['graphics'] as object, { renderer: 'Google SwiftShader' });
    const theirs = await rights.visit({ signals });
    const mine = await rights.visit({ signals });
    expect(mine.answer.needsAttestation).toBe(true);
    const file = join(tempDir('shared'), 'shared.zip');
    const dpo = await rights.as({ gpd_role: 'dpo', sub: 'dora' });
    const out = ['dsar', 'export', '--tenant', KID, '--request', mine.requestId, '--out', file];
    expect(await rights.gpd.json(out)).toMatchObject({ decisions: 1 });
    const receipt = await good('/privacy/erase', { requestId: mine.requestId }, dpo);
    expect(actions(receipt)).toMatchObject({ decisions: 'erased', sightings: 'none' });
    expectError(await rights.decision(mine.requestId, secret), 'no-such-decision');
    expect((await rights.decision(theirs.requestId, secret)).status).toBe(200);
  });
});

describe('what stands in the way', () => {
  it('a reader of another process makes it incomplete, and a resume completes it', async () => {
    const person = await createPerson('held-open');
    const reader = new sqlite3.Database(join(rights.gpd.dataDir, 'gpd.db'), sqlite3.OPEN_READONLY);
    const run = promisify<string, unknown>(reader.all.bind(reader));
    for (const sql of ['BEGIN', 'SELECT COUNT(*) FROM decisions']) await run(sql);
    const receipt = await good('/privacy/erase', {}, person.token);
    expect(receipt.incomplete).toBe(true);
    expect(actions(receipt)).toMatchObject({ decisions: 'pending' });
    const pending = await rights.gpd.cli(['erase', 'status', receipt.receiptId, '--json']);
    expect(pending.code).toBe(5);
    await promisify(reader.close.bind(reader))();
    // On a busy machine the server itself may be reading while the command empties the log: then it asks to be repeated.
    await expect.poll(async () => (await rights.gpd.cli(['erase', 'resume', '--json'])).code).toBe(0);
    const status = await rights.gpd.json<Receipt>(['erase', 'status', receipt.receiptId]);
    expect(status.incomplete).toBe(false);
    expect(actions(status)).toMatchObject({ decisions: 'erased' });
    expect(found(person.ids)).toEqual([]);
  });

  it('a backup keeps what it has, sealed, and the receipt says so', async () => {
    const ownRights = await startRights();
    const person = await createPerson('backed-up', ownRights, await apiKey(ownRights, 'secret'));
    const file = join(ownRights.gpd.dataDir, 'nightly.backup');
    expect((await ownRights.gpd.cli(['backup', file])).code).toBe(0);
    const receipt = await good('/privacy/erase', {}, person.token, ownRights);
    expect(receipt.incomplete).toBe(false);
    expect(receipt.scopes.find(({ scope }) => scope === 'backups')).toMatchObject({
      action: 'retained',
      basis: expect.stringContaining('restore') as string,
    });
    expect(found([...person.ids, person.sub], ownRights)).toEqual([]);
    // An erasure that deleted nothing needs no tombstone, because no backup can bring anything back.
    const dpo = await ownRights.as({ gpd_role: 'dpo', sub: 'dora' });
    const nobody = await good('/privacy/erase', { visitorId: 'unknown' }, dpo, ownRights);
    expect(new Set(Object.values(actions(nobody)))).toEqual(new Set(['none']));
    await ownRights.stop();
  });
});

interface Dsar {
  readonly subject: {
    readonly device: Readonly<Record<'visitorIds' | 'networksByDay', object[]>> & {
      readonly seen: number;
      readonly passkey: object | null;
    };
    readonly linkedRequests: object[];
  };
  readonly decisions: readonly Readonly<
    Record<'signals' | 'supersededBy' | 'reportedOutcome', object | string | null>
  >[];
  readonly override: object | null;
  readonly contests: object[];
  readonly consent: { readonly principalId: string; readonly state: object[]; readonly history: object[] };
}

/** Each table that is exported, with the part of the export that must contain it. */
const EXPORTED_IN: Readonly<Record<string, (dsar: Dsar) => unknown>> = {
  decisions: ({ decisions }) => decisions.length,
  decision_updates: ({ decisions }) => decisions.some(({ supersededBy }) => supersededBy !== null),
  decision_outcomes: ({ decisions }) => decisions.some(({ reportedOutcome }) => reportedOutcome !== null),
  sightings: ({ subject }) => subject.device.seen,
  visitor_index: ({ subject }) => subject.device.visitorIds.length,
  credentials: ({ subject }) => subject.device.passkey,
  network_days: ({ subject }) => subject.device.networksByDay.length,
  signal_summaries: ({ decisions }) => decisions[0]?.signals,
  contests: ({ contests }) => contests.length,
  overrides: ({ override }) => override,
  links: ({ subject }) => subject.linkedRequests.length,
  consent_principals: ({ consent }) => consent.principalId,
  consent_state: ({ consent }) => consent.state.length,
  consent_openings: ({ consent }) => consent.history.length,
};
/** These tables are exported elsewhere, or hold nothing about one person. */
const UNTOLD: Readonly<Record<string, string>> = {
  network_marks: 'salted for the day; told as the count of it',
  webhook_outbox: 'messages about what is told',
  idempotency_keys: 'answers about what is told',
  principal_sessions: 'the hash of a credential',
  console_drafts: 'a text of staff that is not said yet',
};
/** These rows belong to an erasure that waits or runs; erasure.ts in ../contract tests them. */
const HOLDS = ['legal_holds', 'erasing'];
/** The erasure of a principal leaves a keyed tombstone on purpose and destroys its key (contract section 7). */
const TOMBSTONE = 'consent_principals';

const COLUMNS = ['durable', 'request_id', 'visitor_id', 'principal', 'contest_id', 'subject'];

async function subjectTables(): Promise<Map<string, string[]>> {
  const rows = await rights.sql(
    "SELECT m.name AS name, c.name AS col FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'",
  );
  const found = new Map<string, string[]>();
  for (const { name, col } of rows as { name: string; col: string }[])
    if (COLUMNS.includes(col) && name !== 'erasures') found.set(name, [...(found.get(name) ?? []), col]);
  return found;
}

/** @returns the number of rows that name one of the ids */
async function rowsOf(table: string, columns: readonly string[], ids: readonly string[]): Promise<number> {
  const list = ids.map((id) => `'${id}'`).join(', ');
  const condition = columns.map((column) => `${column} IN (${list})`).join(' OR ');
  return (await rights.sql(`SELECT 1 FROM ${table} WHERE ${condition}`)).length;
}

/** A draft of staff, a passkey of the device, an outcome, and a verdict that supersedes the first. */
async function leaveTheRest({ contestId, durable, first, visit }: Person): Promise<void> {
  await rights.sql(
    `INSERT INTO console_drafts (kid, actor, contest_id, kind, outcome, text, at)
      VALUES ('${KID}', 'staff', '${contestId}', 'ask', NULL, 'a draft', ${Date.now()})`,
    `INSERT INTO credentials (kid, durable, public_key, counter, device_bound, created_at, last_at)
      VALUES ('${KID}', '${durable}', 'key', 0, 1, 1, ${Date.now()})`,
    `INSERT INTO decision_updates (kid, earlier, request_id)
      VALUES ('${KID}', '${first.requestId}', '${visit.requestId}')`,
  );
  await good(`/v1/decisions/${first.requestId}/outcome`, { outcome: 'false-alarm' }, secret);
}

describe('every store', () => {
  it('is exported, and left by the erasures', async () => {
    const person = await createPerson('somebody-everywhere');
    const { principal, sub, token } = person;
    await leaveTheRest(person);
    const ids = [...person.ids, principal];
    const tables = await subjectTables();
    const named = [...Object.keys(EXPORTED_IN), ...Object.keys(UNTOLD), ...HOLDS];
    expect([...tables.keys()].sort()).toEqual(named.sort());
    const ofPerson = tablesWhere(({ exported }) => exported.includes('person'));
    const beside = ['decision_updates', 'decision_outcomes'];
    expect(Object.keys(EXPORTED_IN).sort()).toEqual([...ofPerson, ...beside].sort());
    for (const table of HOLDS) tables.delete(table);
    for (const [table, columns] of tables)
      expect(await rowsOf(table, columns, ids), table).toBeGreaterThan(0);

    const dsar = await good<Dsar>('/privacy/dsar', {}, token);
    for (const [table, exportedPart] of Object.entries(EXPORTED_IN))
      expect(exportedPart(dsar), table).toBeTruthy();

    const dpo = await rights.as({ gpd_role: 'dpo', sub: 'dora' });
    await good('/privacy/erase', {}, token);
    await good('/privacy/erase', { principalId: sub }, dpo);
    for (const [table, columns] of tables) {
      // The message that a principal was erased waits for the webhooks, by the keyed reference.
      const stays = table === TOMBSTONE || table === 'webhook_outbox' ? 1 : 0;
      expect(await rowsOf(table, columns, ids), table).toBe(stays);
    }
    const of = `WHERE principal = '${principal}'`;
    expect(await rights.sql(`SELECT wrapped_key FROM ${TOMBSTONE} ${of}`)).toEqual([{ wrapped_key: null }]);
    expect(await rights.sql(`SELECT event FROM webhook_outbox ${of}`)).toEqual([{ event: 'subject.erased' }]);
  });

  it('is in the storage inventory of docs/rights.md', async () => {
    const rows = await rights.sql(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'knex_%'",
    );
    const page = readFileSync(new URL('../../../docs/rights.md', import.meta.url), 'utf8');
    const inventory = page.slice(page.indexOf('## Storage inventory'), page.indexOf('## Templates'));
    expect(rows.length).toBeGreaterThan(40);
    expect(rows.map(({ name }) => String(name)).filter((name) => !inventory.includes(`\`${name}\``))).toEqual(
      [],
    );
  });
});
