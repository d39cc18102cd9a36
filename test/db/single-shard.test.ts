import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { makeConsentStateReader } from '../../src/consent/state-store.ts';
import type { Database } from '../../src/db/db.ts';
import { SUBJECT_DATA } from '../../src/rights/person-map.ts';
import { appender, macOf, makeRequest } from '../consent/contract/consent-support.ts';
import { addApiKey } from '../support/api-key.ts';
import { gpdJson, tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { expectCore, post } from '../support/expect.ts';
import { postJson } from '../support/http.ts';
import { makeEntry } from '../support/make.ts';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { ensureTenant, makeRecorder } from '../support/recorder.ts';
import { desktopChrome } from '../support/samples.ts';
import { makeBundle } from '../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';
import { addTenant } from './contract/database.ts';
import { onPostgres } from './contract/makers.ts';

/** Tables that a distributed PostgreSQL can place by tenant, read off the map of tables: `kid` is in their key. */
const PLACED = Object.entries(SUBJECT_DATA)
  .filter(([, { key }]) => (key as readonly string[]).includes('kid'))
  .map(([table]) => table);

const TABLE = new RegExp(
  `\\b(FROM|JOIN|INTO|UPDATE)\\s+"?(${PLACED.join('|')})"?(?![\\w.])(?:\\s+(?:AS\\s+)?(?!ON\\b|SET\\b|WHERE\\b|ORDER\\b|FOR\\b)([a-z]\\w*))?`,
  'gi',
);

/** Tables that this statement reads or writes without the tenant in an equality: it would go to every shard. */
function everywhere(sql: string): string[] {
  return [...sql.matchAll(TABLE)].flatMap(([found, how = '', table = '', alias]) => {
    const rest = sql.slice(sql.indexOf(found) + found.length);
    if (how.toUpperCase() === 'INTO') return /^\s*\((?:[^)]*\W)?kid\b/.test(rest) ? [] : [table];
    const name = alias ?? `(?:"?${table}"?\\.)?"?`;
    const column = alias === undefined ? `${name}kid"?` : `${name}\\.kid`;
    const is = new RegExp(
      `(?<![\\w.])${column}\\s*(?:=\\s*(?:\\$|\\w+\\.kid)|in\\s*\\((?:\\$|SELECT kid FROM q))|=\\s*${column}\\b`,
      'i',
    );
    return is.test(sql) ? [] : [table];
  });
}

describe('the check of statements', () => {
  it.each([
    ['SELECT count(*) FROM decisions', 'decisions'],
    ['SELECT s.seen FROM q JOIN sightings s ON s.durable = q.durable WHERE q.kid = $1', 'sightings'],
    ['INSERT INTO nonces (nonce, dated_at) VALUES ($1, $2)', 'nonces'],
    ['update "consent_state" set "mac" = $1 where "principal" = $2', 'consent_state'],
  ])('sees that %s names no tenant', (sql, table) => expect(everywhere(sql)).toEqual([table]));

  it('places what belongs to a tenant', () => {
    expect(PLACED).toEqual(
      expect.arrayContaining(['decisions', 'nonces', 'sightings', 'consent_state', 'ledger_entries']),
    );
  });
});

describeWithTool('batches on PostgreSQL', await missingPostgres(), () => {
  it.each(['record', 'append', 'check'] as const)('%s one tenant at a time', async (what) => {
    const db = await (await onPostgres(sharedPostgres()))();
    const kids = await Promise.all(['one', 'two', 'three'].map((kid) => addTenant(db.database, kid)));
    let transactions = 0;
    const watched: Database = {
      ...db.database,
      plainTransaction: (work) => {
        transactions += 1;
        return db.database.plainTransaction(work);
      },
    };
    const queries = vi.fn();
    db.database.read.on('query', ({ sql }: { sql: string }) => queries(sql));
    const recorder = makeRecorder(watched);
    const consent = appender(watched);
    const states = makeConsentStateReader(watched);
    const ways = {
      record: (kid: string, id: string) => recorder.record(makeEntry({ kid, id })),
      append: (kid: string, id: string) => consent.append(makeRequest(kid, { principal: id })),
      check: (kid: string, id: string) =>
        states.read({ kid, principal: id, purpose: 'ads', mac: macOf(kid) }),
    };
    if (what === 'record') await Promise.all(kids.map((kid) => ensureTenant(db.database, kid)));
    queries.mockClear();
    const items = ['a', 'b', 'c'].flatMap((id) => kids.map((kid) => [kid, id] as const));
    await Promise.all(items.map(([kid, id]) => ways[what](kid, `${kid}-${id}`)));
    const reads = queries.mock.calls.filter(([sql]) => /consent_state/.test(String(sql)));
    expect(what === 'check' ? reads.length : transactions).toBe(kids.length);
    await db.close();
  });
});

describeWithTool('the hot statements on PostgreSQL', await missingPostgres(), () => {
  // Before the first connection: each wraps the method that it has.
  const queries = vi.spyOn(pg.Client.prototype, 'query');
  let gpd: Gpd;
  let target: SealTarget;
  let authorization: string;
  beforeAll(async () => {
    const url = await sharedPostgres().freshUrl();
    const dataDir = join(tempDir('shard'), 'gpd-data');
    const env = { GPD_DATABASE_URL: url, GPD_DATA_DIR: dataDir };
    const made = await gpdJson<{ publicKey: string }>(['init', '--tenant', KID, '--origin', ORIGIN], { env });
    gpd = await startGpd({ dataDir, settings: { GPD_DATABASE_URL: url } });
    target = { kid: KID, publicKey: Buffer.from(made.publicKey, 'base64') };
    authorization = `Bearer ${await addApiKey(gpd)}`;
  });
  afterAll(async () => {
    await gpd.stop();
    queries.mockRestore();
  });

  const call = async (path: string, body: object, status: number): Promise<void> => {
    const reply = await postJson(gpd.url, path, { principalId: 'erika', ...body }, { authorization });
    expect(reply.status).toBe(status);
  };
  const purposes = ['device-identification'];

  it.each<[string, string, () => Promise<unknown>]>([
    [
      'ingest',
      'decisions',
      async () => expectCore(await post(gpd.url, makeBundle(target, { signals: desktopChrome() })), 'ok'),
    ],
    ['a grant', 'ledger_entries', () => call('/v1/consent/grant', { purposes }, 201)],
    ['a check', 'consent_state', () => call('/v1/consent/can-process', { purpose: purposes[0] }, 200)],
    ['a withdrawal', 'consent_state', () => call('/v1/consent/withdraw', { purposes }, 201)],
  ])('of %s are of one tenant', async (_way, touches, run) => {
    const before = queries.mock.calls.length;
    await run();
    const sent = (queries.mock.calls.slice(before) as unknown[][]).map(([query]) =>
      typeof query === 'string' ? query : String((query as { text: unknown }).text),
    );
    expect(sent.join('\n')).toContain(touches);
    // The poll of settings may fall in between: it reads the tenants, a reference table.
    const hot = sent.filter((sql) => !/from "tenants"|from "revisions"/.test(sql));
    expect(hot.flatMap((sql) => everywhere(sql).map((table) => `${table}: ${sql}`))).toEqual([]);
  });
});
