import { randomBytes } from 'node:crypto';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { recordAudit } from '../../../src/audit/audit-store.ts';
import { loadConfig } from '../../../src/config.ts';
import { impersonalEntry } from '../../../src/ledger/entries.ts';
import { appendLeaves, EMPTY_FRONTIER, encodeFrontier, leafHash } from '../../../src/ledger/merkle.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { anchorAudit, anchorVerdicts } from '../../../src/log/anchors-store.ts';
import { createCheckpointBook } from '../../../src/log/checkpoint-files.ts';
import { currentCheckpoint } from '../../../src/log/checkpoint-service.ts';
import { openStore } from '../../../src/tenants/installation-files.ts';
import { open } from '../../rights/support/eraser.ts';
import { runGpd, tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { createEntry } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { initGpd } from '../../support/server.ts';

/** The table of docs/security.md, row by row: each attack is made on a copy of one installation, and looked for. */

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PURPOSE = 'device-identification';
const NOW = Date.now();
/** An anchored hour, and an hour that is not over. */
const [ANCHORED, RECENT] = [NOW - 4 * HOUR, NOW];
const OLD = NOW - 3 * DAY;

let base: string;
let grantedRow: Readonly<Record<string, unknown>>;
let before: readonly string[];

const gpdIn = (dataDir: string, words: readonly string[]) =>
  runGpd(words, { env: { GPD_DATA_DIR: dataDir } });

/** Anchors what is over and signs the log, as a server does. */
async function anchorAndSign(dataDir: string): Promise<void> {
  const { serverSecret, database } = await openStore(
    loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} }),
  );
  const opened = await open(dataDir);
  const actor = { role: 'dpo', ref: 'dora' } as const;
  for (const [id, decidedAt] of [
    ['old', OLD],
    ['a', ANCHORED],
    ['b', ANCHORED],
    ['c', RECENT],
  ] as const)
    await createRecorder(database).record(createEntry({ kid: KID, id, decidedAt }));
  const event = { kid: KID, at: ANCHORED, actor, action: 'dsar.exported', object: null, detail: {} } as const;
  await recordAudit(database, event);
  for (const anchor of [anchorVerdicts, anchorAudit])
    await anchor(database, KID, NOW, opened.tenant.stateMac);
  const book = createCheckpointBook(dataDir, serverSecret);
  const deps = { database, book, tenantOf: () => opened.tenant, clock: Date.now };
  await currentCheckpoint(deps, KID, 0, 0);
  await opened.database.close();
  await database.close();
}

async function lookFor(dataDir: string) {
  const verified = await gpdIn(dataDir, ['consent', 'verify', KID, '--json']);
  const { problems = [] } = JSON.parse(verified.stdout || '{}') as { problems?: { code: string }[] };
  const { stdout } = await gpdIn(dataDir, ['doctor', '--json']);
  const { checks } = JSON.parse(stdout) as { checks: { id: string; status: string }[] };
  const failed = checks.filter(({ status }) => status === 'fail').map(({ id }) => id);
  return { codes: problems.map(({ code }) => code), failed };
}

beforeAll(async () => {
  ({ dataDir: base } = await initGpd());
  await gpdIn(base, ['consent', 'grant', KID, 'anna', PURPOSE]);
  [grantedRow = {}] = await execute(base, 'SELECT * FROM consent_state');
  await gpdIn(base, ['consent', 'withdraw', KID, 'anna', PURPOSE]);
  await anchorAndSign(base);
  const found = await lookFor(base);
  expect(found.codes).toEqual([]);
  before = found.failed;
});

/** Appends an entry by SHA-256 alone. */
async function appendForged(dataDir: string, entry: Buffer): Promise<void> {
  const rows = await execute(dataDir, `SELECT hash FROM ledger_entries WHERE kid = '${KID}' ORDER BY seq`);
  const leaf = leafHash(entry);
  await setHead(dataDir, [...rows.map(({ hash }) => Buffer.from(String(hash), 'hex')), leaf]);
  const values = `'${KID}', ${rows.length}, '${leaf.toString('hex')}', '${entry.toString()}'`;
  await execute(dataDir, `INSERT INTO ledger_entries (kid, seq, hash, entry) VALUES (${values})`);
}

async function setHead(dataDir: string, leaves: readonly Buffer[]): Promise<void> {
  const { frontier } = appendLeaves(EMPTY_FRONTIER, leaves);
  const hash = leaves.at(-1)?.toString('hex') ?? '';
  await execute(
    dataDir,
    `UPDATE ledger_heads SET size = ${frontier.size}, frontier = '${encodeFrontier(frontier)}', head_hash = '${hash}'`,
  );
}

type Attack = (dataDir: string) => Promise<unknown>;
const by =
  (...sql: readonly string[]): Attack =>
  (dataDir) =>
    execute(dataDir, ...sql);

async function cutUnsigned(dataDir: string): Promise<void> {
  const rows = await execute(dataDir, 'SELECT hash FROM ledger_entries ORDER BY seq');
  await gpdIn(dataDir, ['consent', 'grant', KID, 'carl', PURPOSE]);
  const size = rows.length;
  const [{ principal } = {}] = await execute(
    dataDir,
    `SELECT principal FROM consent_openings WHERE seq >= ${size}`,
  );
  await execute(dataDir, `DELETE FROM ledger_entries WHERE seq >= ${size}`);
  for (const table of ['consent_openings', 'consent_state', 'consent_principals'])
    await execute(dataDir, `DELETE FROM ${table} WHERE principal = '${String(principal)}'`);
  await setHead(
    dataDir,
    rows.map(({ hash }) => Buffer.from(String(hash), 'hex')),
  );
}

const nameOf = (row: Readonly<Record<string, unknown>>) => Object.keys(row).join(', ');
const valuesOf = (row: Readonly<Record<string, unknown>>) =>
  Object.values(row)
    .map((value) => (value === null ? 'NULL' : typeof value === 'number' ? value : `'${value as string}'`))
    .join(', ');

const hourOf = (at: number): number => Math.floor(at / HOUR) * HOUR;
const setting = (path: string, value: string) =>
  `UPDATE tenants SET settings = json_set(settings, '$."${path}"', ${value})`;
const isSeen = ({ codes, failed }: Awaited<ReturnType<typeof lookFor>>): boolean =>
  codes.length > 0 || failed.some((id) => !before.includes(id));

async function shortenRetention(dataDir: string): Promise<void> {
  await execute(dataDir, setting('retention.days', '1'));
  expect(await gpdIn(dataDir, ['retention', 'run', '--yes'])).toMatchObject({ code: 0 });
  const old = await execute(dataDir, `SELECT 1 FROM decisions WHERE decided_at <= ${OLD}`);
  const logged = await execute(
    dataDir,
    "SELECT 1 FROM ledger_entries WHERE entry LIKE '%retention.applied%'",
  );
  expect([old.length, logged.length]).toEqual([0, 1]);
}

/** The attack, and by what it is seen: a code of verify, a check of doctor; null: by nothing here. */
interface Row {
  readonly start: string;
  readonly seenBy: string | null;
  readonly attacks: readonly Attack[];
}

const row = (start: string, seenBy: string | null, ...attacks: readonly Attack[]): Row => ({
  start,
  seenBy,
  attacks,
});

const retention = () => {
  const at = NOW + 731 * DAY;
  const detail = { before: new Date(NOW + DAY).toISOString(), decisions: 3, audit: 1 };
  return impersonalEntry({ type: 'retention.applied', at, purpose: null }, detail);
};
const NEW_AGENT = `INSERT INTO agent_directories (url, source, keys) VALUES ('https://agent.example', 'pinned', '[]')`;
const NEW_KEY = `INSERT INTO api_keys (kid, id, scope, name, hash, created_at) VALUES ('${KID}', 'key_x', 'secret', 'x', '${'h'.repeat(43)}', ${NOW})`;

const NEW_PASSKEY = `INSERT INTO staff (kid, id, name, role, credential, public_key, counter, created_at, invite_until, joined_at)
  VALUES ('${KID}', 'stf_x', 'Mallory', 'dpo', 'c', 'k', 0, ${NOW}, ${NOW}, ${NOW})`;

const ROWS: readonly Row[] = [
  row(
    'take off or change entries that a checkpoint covers',
    'entry-changed',
    by('DELETE FROM ledger_entries WHERE seq = 3'),
  ),
  row('take off entries of the last hour', null, cutUnsigned),
  row('append an entry', 'entry-unauthenticated', (dataDir) => appendForged(dataDir, retention())),
  row('change the head', 'entry-changed', by("UPDATE ledger_heads SET frontier = 'AAAA'")),
  row('turn a withdrawal into a grant', 'consent.state', by("UPDATE consent_state SET choice = 'granted'")),
  row('change what a person chose', 'opening-changed', by("UPDATE consent_openings SET choice = 'denied'")),
  row('put back an older row of a person', 'state-changed', (dataDir) =>
    execute(
      dataDir,
      'DELETE FROM consent_state',
      `INSERT INTO consent_state (${nameOf(grantedRow)}) VALUES (${valuesOf(grantedRow)})`,
    ),
  ),
  row(
    'delete all rows of a person',
    'opening-changed',
    by('DELETE FROM consent_state', 'DELETE FROM consent_openings', 'DELETE FROM consent_principals'),
  ),
  row(
    'change, delete or add verdicts or audit rows of an anchored hour',
    'rows-missing',
    by(`DELETE FROM decisions WHERE decided_at = ${ANCHORED}`),
    by(`DELETE FROM audit_log WHERE at <= ${ANCHORED}`),
  ),
  row(
    'change, delete or add them before the hour is anchored',
    null,
    by(`DELETE FROM decisions WHERE decided_at = ${RECENT}`),
  ),
  row(
    'write a verdict off as erased',
    null,
    by(
      `INSERT INTO erased_verdicts SELECT kid, ${hourOf(ANCHORED)}, 0, commitment FROM decisions WHERE request_id = (SELECT min(request_id) FROM decisions WHERE decided_at = ${ANCHORED})`,
      `DELETE FROM decisions WHERE request_id = (SELECT min(request_id) FROM decisions WHERE decided_at = ${ANCHORED})`,
    ),
  ),
  row('shorten `retention.days`', null, shortenRetention),
  row(
    'replace a seal key',
    'keys.published',
    by(`UPDATE seal_keys SET public_key = '${randomBytes(65).toString('base64')}'`),
    by('UPDATE seal_keys SET wrapped_private = NULL'),
  ),
  row('add an agent', null, by(NEW_AGENT)),
  row(
    'change the weights',
    null,
    by(`INSERT INTO tenant_policies (kid, mode, policy) VALUES ('${KID}', 'live', '{"weights":{"A1":0}}')`),
    by(
      `INSERT INTO overrides (kid, durable, created_at) SELECT kid, durable, ${NOW} FROM decisions WHERE decided_at = ${RECENT}`,
    ),
  ),
  row('change what no log covers', null, by(setting('consent.byAutomation', "'deny'"))),
  row('add their own API key, session or staff passkey', null, by(NEW_KEY), by(NEW_PASSKEY)),
  row(
    'lay a trigger, a view or a table',
    'database.schema',
    by('CREATE TABLE stolen (x TEXT)'),
    by('CREATE VIEW seen AS SELECT * FROM decisions'),
    by('CREATE TRIGGER kept BEFORE DELETE ON decisions BEGIN SELECT RAISE(IGNORE); END'),
  ),
  row('take away or change the cosignatures', null, by("UPDATE checkpoints SET cosignatures = 'x'")),
];

/** Rows about several nodes or files: the tests that attack them. */
const ELSEWHERE: Readonly<Record<string, readonly [file: string, title: string]>> = {
  'PostgreSQL: change a log': [
    'test/consent/contract/tampered-log.ts',
    'is reported by every node by itself',
  ],
  'put the database and `checkpoints.log` back': [
    'test/log/heavy/litewitness.test.ts',
    'refuses a copy of the log that went on by itself',
  ],
};

/** The first two columns of the table. */
const tableRows = ((): readonly (readonly [string, string])[] => {
  const page = readFileSync(join(ROOT, 'docs/security.md'), 'utf8');
  const part = page.split('## A writer of the database')[1]?.split('\n## ')[0] ?? '';
  const lines = part.split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(1).map((line) => {
    const [, attack = '', detection = ''] = line.split('|').map((cell) => cell.trim());
    return [attack.replace(/'/g, '’'), detection] as const;
  });
})();

describe('a writer of the database, as docs/security.md says', () => {
  it('has an attack for each row, and no other', () => {
    const starts = [...ROWS.map(({ start }) => start), ...Object.keys(ELSEWHERE)];
    const without = tableRows.filter(([attack]) => !starts.some((start) => attack.startsWith(start)));
    expect(without).toEqual([]);
    expect(starts.filter((start) => !tableRows.some(([attack]) => attack.startsWith(start)))).toEqual([]);
    for (const [file, title] of Object.values(ELSEWHERE))
      expect(readFileSync(join(ROOT, file), 'utf8'), file).toContain(title);
  });

  it.each(ROWS)('$start', async ({ start, seenBy, attacks }) => {
    const [, says = ''] = tableRows.find(([attack]) => attack.startsWith(start)) ?? [];
    expect(says.startsWith('yes') || (seenBy !== null && says.includes(seenBy)), says).toBe(seenBy !== null);
    for (const attack of attacks) {
      const dataDir = join(tempDir('attacked'), 'data');
      cpSync(base, dataDir, { recursive: true });
      await attack(dataDir);
      const found = await lookFor(dataDir);
      expect(isSeen(found), JSON.stringify(found)).toBe(seenBy !== null);
      if (seenBy !== null) expect([...found.codes, ...found.failed]).toContain(seenBy);
    }
  });
});
