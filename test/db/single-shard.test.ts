import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createConsentStateReader } from '../../src/consent/state-store.ts';
import type { Database } from '../../src/db/engine.ts';
import { appender, createRequest, macOf } from '../consent/contract/consent-support.ts';
import { addApiKey } from '../support/api-key.ts';
import { gpdJson, tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { noteStatements } from '../support/database.ts';
import { expectCore, post } from '../support/expect.ts';
import { postJson } from '../support/http.ts';
import { createEntry } from '../support/make.ts';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { createRecorder, ensureTenant } from '../support/recorder.ts';
import { desktopChrome } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';
import { addTenant } from './contract/database.ts';
import { onPostgres } from './contract/makers.ts';

/**
 * True for a statement on a table with a `kid` that names none by equality, so that a distributed PostgreSQL would
 * ask every shard. An insert names it in each of its rows.
 */
function isUnrouted(sql: string, withKid: readonly string[]): boolean {
  const touches = new RegExp(`\\b(?:FROM|JOIN|INTO|UPDATE)\\s+"?(?:${withKid.join('|')})"?(?![\\w.])`, 'i');
  return touches.test(sql) && !/\bkid"?\s*=\s*\$\d|\bINTO\s+"?\w+"?\s*\((?:[^)]*\W)?kid\b/i.test(sql);
}

it.each([
  ['SELECT count(*) FROM decisions', true],
  ['SELECT s.seen FROM q JOIN sightings s ON s.kid = q.kid', true],
  ['SELECT s.seen FROM q JOIN sightings s ON s.kid = q.kid WHERE q.kid = $1', false],
  ['INSERT INTO nonces (nonce, dated_at) VALUES ($1, $2)', true],
  ['update "consent_state" set "mac" = $1 where "principal" = $2', true],
])('%s asks every shard: %s', (sql, expected) => {
  expect(isUnrouted(sql, ['decisions', 'sightings', 'nonces', 'consent_state'])).toBe(expected);
});

describeWithTool('batches on PostgreSQL', await missingPostgres(), () => {
  it.each(['record', 'append', 'check'] as const)('%s one tenant at a time', async (operation) => {
    const db = await onPostgres(sharedPostgres())();
    const kids = await Promise.all(['one', 'two', 'three'].map((kid) => addTenant(db.database, kid)));
    let transactions = 0;
    const watched: Database = {
      ...db.database,
      transaction: (work) => {
        transactions += 1;
        return db.database.transaction(work);
      },
    };
    const queries = vi.fn();
    noteStatements(db.database.read, ({ sql }) => queries(sql));
    const recorder = createRecorder(watched);
    const consent = appender(watched);
    const states = createConsentStateReader(watched);
    const ways = {
      record: (kid: string, id: string) => recorder.record(createEntry({ kid, id })),
      append: (kid: string, id: string) => consent.append(createRequest(kid, { principal: id })),
      check: (kid: string, id: string) =>
        states.read({ kid, principal: id, purpose: 'ads', mac: macOf(kid) }),
    };
    if (operation === 'record') await Promise.all(kids.map((kid) => ensureTenant(watched, kid)));
    queries.mockClear();
    transactions = 0;
    const items = ['a', 'b', 'c'].flatMap((id) => kids.map((kid) => [kid, id] as const));
    await Promise.all(items.map(([kid, id]) => ways[operation](kid, `${kid}-${id}`)));
    const reads = queries.mock.calls.filter(([sql]) => /consent_state/.test(String(sql)));
    expect(operation === 'check' ? reads.length : transactions).toBe(kids.length);
    await db.close();
  });
});

describeWithTool('the hot statements on PostgreSQL', await missingPostgres(), () => {
  let gpd: Gpd;
  let target: SealTarget;
  let authorization: string;
  let client: pg.Client;
  let withKid: string[];
  beforeAll(async () => {
    const url = await sharedPostgres().freshUrl();
    client = new pg.Client(url);
    await client.connect();
    await client.query('CREATE EXTENSION pg_stat_statements');
    const dataDir = join(tempDir('shard'), 'gpd-data');
    const env = { GPD_DATABASE_URL: url, GPD_DATA_DIR: dataDir };
    const tenant = await gpdJson<{ publicKey: string }>(['init', '--tenant', KID, '--origin', ORIGIN], {
      env,
    });
    gpd = await startGpd({ dataDir, settings: { GPD_DATABASE_URL: url } });
    target = { kid: KID, publicKey: Buffer.from(tenant.publicKey, 'base64') };
    authorization = `Bearer ${await addApiKey(gpd)}`;
    const columns = await client.query<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.columns WHERE column_name = 'kid'",
    );
    withKid = columns.rows.map(({ name }) => name);
  });
  afterAll(async () => {
    await client.end();
    await gpd.stop();
  });

  /** @returns the statements that this database has run since the last reset */
  async function loggedStatements(): Promise<string[]> {
    const { rows } = await client.query<{ query: string }>(
      `SELECT query FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
        WHERE d.datname = current_database() AND query NOT LIKE '%pg_stat_statements%'`,
    );
    return rows.map(({ query }) => query);
  }

  const call = async (path: string, body: object, status: number): Promise<void> => {
    const reply = await postJson(gpd.url, path, { principalId: 'erika', ...body }, { authorization });
    expect(reply.status).toBe(status);
  };
  const purposes = ['device-identification'];

  it.each<[string, string, () => Promise<unknown>]>([
    [
      'ingest',
      'decisions',
      async () => expectCore(await post(gpd.url, createBundle(target, { signals: desktopChrome() })), 'ok'),
    ],
    ['a grant', 'ledger_entries', () => call('/v1/consent/grant', { purposes }, 201)],
    ['a check', 'consent_state', () => call('/v1/consent/can-process', { purpose: purposes[0] }, 200)],
    ['a withdrawal', 'consent_state', () => call('/v1/consent/withdraw', { purposes }, 201)],
  ])('of %s name one tenant each', async (_way, touches, run) => {
    await client.query(
      'SELECT pg_stat_statements_reset(0, oid) FROM pg_database WHERE datname = current_database()',
    );
    await run();
    const statements = await loggedStatements();
    expect(statements.join('\n')).toContain(touches);
    // The poll, which reads a changed tenant's settings, may fall in between: it alone asks for whole rows of several tenants.
    const isPoll = (sql: string): boolean =>
      /from "(tenants|revisions|webhooks|agent_directories)"|^select \* from "\w+" where "kid" in \(/.test(
        sql,
      );
    const hot = statements.filter((sql) => !isPoll(sql));
    expect(hot.filter((sql) => isUnrouted(sql, withKid))).toEqual([]);
  });
});
