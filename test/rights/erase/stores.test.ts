import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { KID, ORIGIN, REASON } from '../../support/constants.ts';
import { SEEN_WITHIN } from '../../support/expect.ts';
import { apiKey, keepSummaries, type Rights, startRights, type Visit } from '../support/rights.ts';

/** One person with a row in every store: the export tells of each, and the erasures leave none. A new table has to be named here. */

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

interface Dsar {
  readonly subject: {
    readonly device: {
      readonly seen: number;
      readonly visitorIds: object[];
      readonly networksByDay: object[];
      readonly passkey: object | null;
    };
    readonly linkedRequests: object[];
  };
  readonly decisions: readonly {
    readonly signals: object | null;
    readonly supersededBy: string | null;
    readonly reportedOutcome: object | null;
  }[];
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
/**
 * These rows belong to an erasure that waits or runs; rights.ts and erase-large.ts in ../contract test
 * them.
 */
const HOLDS = ['legal_holds', 'erasing'];
/**
 * The erasure of a principal leaves a keyed tombstone on purpose and destroys its key (contract section 7).
 */
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
  return Number((await rights.sql(`SELECT COUNT(*) AS n FROM ${table} WHERE ${condition}`))[0]?.['n']);
}

const post = (path: string, body: object, token: string, headers: Record<string, string> = {}) =>
  rights.call(path, body, token, headers).then((reply) => {
    expect({ path, status: reply.status, text: reply.text }).toMatchObject({
      status: expect.toSatisfy(isGood),
    });
    return reply.json() as Record<string, string>;
  });
const isGood = (status: number): boolean => status >= 200 && status < 300;

async function linkAndConsent(visit: Visit, principalId: string): Promise<void> {
  const { token } = await post('/v1/sessions', { principalId }, secret);
  const browser = { cookie: `gp_session=${visit.session}`, origin: ORIGIN };
  await post('/v1/principals/link', { token: visit.token }, token ?? '', browser);
  const grant = { principalId, purposes: ['device-identification'] };
  await post('/v1/consent/grant', grant, secret, { 'idempotency-key': 'once' });
}

/** A draft of staff, a passkey of the device, and a verdict that supersedes the first. */
async function leaveTheRest(contestId: string, durable: string, requests: readonly string[]): Promise<void> {
  const now = Date.now();
  await rights.sql(
    `INSERT INTO console_drafts (kid, actor, contest_id, kind, outcome, text, at)
      VALUES ('${KID}', 'staff', '${contestId}', 'ask', NULL, 'a draft', ${now})`,
    `INSERT INTO credentials (kid, durable, public_key, counter, device_bound, created_at, last_at)
      VALUES ('${KID}', '${durable}', 'key', 0, 1, ${now}, ${now})`,
    `INSERT INTO decision_updates (kid, earlier, request_id) VALUES ('${KID}', '${requests.join("', '")}')`,
  );
  await post(`/v1/decisions/${requests[0]}/outcome`, { outcome: 'false-alarm' }, secret);
}

it('is exported from every store and erased from every store', async () => {
  const device = '5'.repeat(32);
  const first = await rights.visit({ device, bot: true });
  const visit = await rights.visit({ device, bot: true });
  const sub = 'somebody-everywhere';
  const token = await rights.as({ gpd_role: 'subject', sub, gpd_visitor: visit.visitorId });
  const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita' });
  const { contestId = '' } = await post('/privacy/contest', { requestId: first.requestId }, token);
  await post('/privacy/contest/resolve', { contestId, outcome: 'overturned', reason: REASON }, reviewer);
  await linkAndConsent(visit, sub);
  const knownRows = await rights.sql(
    `SELECT d.durable AS durable, l.principal AS principal FROM decisions d JOIN links l ON l.request_id = d.request_id
      WHERE d.request_id = '${visit.requestId}'`,
  );
  const { durable, principal } = knownRows[0] as { durable: string; principal: string };
  await leaveTheRest(contestId, durable, [first.requestId, visit.requestId]);

  const ids = [durable, principal, contestId, first.requestId, visit.requestId, visit.visitorId];
  const tables = await subjectTables();
  expect([...tables.keys()].sort()).toEqual(
    [...Object.keys(EXPORTED_IN), ...Object.keys(UNTOLD), ...HOLDS].sort(),
  );
  for (const [table, columns] of tables) {
    if (HOLDS.includes(table)) continue;
    expect({ table, rows: await rowsOf(table, columns, ids) }).toEqual({
      table,
      rows: expect.toSatisfy((n: number) => n > 0),
    });
  }

  const dsar = (await rights.call('/privacy/dsar', {}, token)).json() as Dsar;
  for (const [table, exportedPart] of Object.entries(EXPORTED_IN))
    expect({ table, told: exportedPart(dsar) }).toSatisfy(isExported);

  const dpo = await rights.as({ gpd_role: 'dpo', sub: 'dora' });
  await post('/privacy/erase', {}, token);
  await post('/privacy/erase', { principalId: sub }, dpo);
  for (const [table, columns] of tables) {
    const rows = await rowsOf(table, columns, ids);
    // The message that a principal was erased waits for the webhooks, by the keyed reference.
    const stays = table === TOMBSTONE || table === 'webhook_outbox' ? 1 : 0;
    expect({ table, rows }).toEqual({ table, rows: stays });
  }
  const [tombstone] = await rights.sql(
    `SELECT wrapped_key FROM ${TOMBSTONE} WHERE principal = '${principal}'`,
  );
  expect(tombstone?.['wrapped_key']).toBeNull();
  const [message] = await rights.sql(`SELECT event FROM webhook_outbox WHERE principal = '${principal}'`);
  expect(message?.['event']).toBe('subject.erased');
});

const isExported = ({ told: exportedPart }: { readonly told: unknown }): boolean => Boolean(exportedPart);

it('has every table in the storage inventory of docs/rights.md', async () => {
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
