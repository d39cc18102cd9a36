import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DoctorContext, FileFact } from '../../../src/ops/doctor/context-service.ts';
import { type Environment, tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { selfSigned } from '../../support/self-signed.ts';

/** Faults that the checks of `gpd doctor` must find, at least one per check. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
export const NOW = Date.now();

export interface Row {
  readonly id: string;
  readonly status: 'warn' | 'fail';
  readonly detail: RegExp;
  /** Statements that spoil the database of a new installation. */
  readonly sql?: readonly string[];
  readonly files?: (dataDir: string) => void;
  readonly env?: Environment;
  /** Changes to the facts that checks read, for faults that no test can cause on this machine. */
  readonly context?: (base: DoctorContext) => Partial<DoctorContext>;
}

type Rest = Omit<Row, 'id' | 'status' | 'detail'>;

const on =
  (status: Row['status']) =>
  (id: string, detail: RegExp, rest: Rest = {}): Row => ({ id, status, detail, ...rest });
const [warn, fail] = [on('warn'), on('fail')];

const sql = (...statements: readonly string[]) => ({ sql: statements });
const env = (settings: Environment): Rest => ({ env: settings });
const meta = (name: string, value: string | number): Rest =>
  sql(`INSERT INTO meta (name, value) VALUES ('${name}', '${value}')`);
const migration = (name: string): Rest =>
  sql(`INSERT INTO knex_migrations (name, batch) VALUES ('${name}', 9)`);
const setting = (name: string, json: string) =>
  sql(`UPDATE tenants SET settings = json_set(settings, '$."${name}"', json('${json}'))`);
const text = (name: string, content = ''): Rest => ({
  files: (dataDir) => writeFileSync(join(dataDir, name), content),
});
const mode = (name: string, bits: number): Rest => ({
  files: (dataDir) => chmodSync(join(dataDir, name), bits),
});
const file = (name: string, parts: Partial<FileFact>): Rest => ({
  context: ({ file: read }) => ({
    file: (path) => {
      if (!path?.endsWith(name)) return read(path);
      return { path, uid: 0, mode: 0o600, size: 1, readable: true, ...read(path), ...parts };
    },
  }),
});
const disk = (parts: Partial<ReturnType<DoctorContext['disk']>>): Rest => ({
  context: () => ({
    disk: () => ({ freeBytes: 50e9, totalBytes: 100e9, freeInodes: 0.9, kind: 'local', ...parts }),
  }),
});
const server = (parts: object): Rest => ({
  context: ({ server: read, version }) => ({
    server: async () => ({ ...(await read()), health: { version }, ...parts }),
  }),
});
const provider = (parts: { skewMs?: number; problem?: string }): Rest => ({
  context: () => ({ provider: async () => ({ skewMs: 0, problem: null, ...parts }) }),
});
const pooling = (parts: object): Rest => ({
  context: ({ reachable }) => ({
    reachable: async () => ({
      ...(await reachable()),
      pooling: { pooled: true, transactions: true, readLimit: '9s', ...parts },
    }),
  }),
});
const decision = (kid: string, at: number): Rest =>
  sql(`INSERT INTO decisions VALUES ('${kid}', 'req_1', ${at}, 'human', NULL, '{}', 's', 'c')`);
const failing = (job: string, reason: string): Rest =>
  sql(`INSERT INTO job_failures VALUES ('${KID}', '${job}', ${NOW - 3 * HOUR}, '${reason}')`);
const notCosigned = (reason: string): Rest => ({
  ...failing('cosign-checkpoints', `NotCosigned ${reason} dpo.example/w`),
  context: ({ config }) => ({ config: { ...config, witnesses: ['KEY@https://dpo.example'] } }),
});
const erasure = (state: string): Rest =>
  sql(
    `INSERT INTO erasures VALUES ('r', '${KID}', 's', 'me', ${NOW - 2 * DAY}, '[]', '[]', '${state}', NULL, 0)`,
  );
const contest = (dueAt: number): Rest =>
  sql(
    `INSERT INTO contests (kid, contest_id, request_id, filed_by, filed_at, due_at, status, version, class)
     VALUES ('${KID}', 'c', 'req_1', 'me', 1, ${dueAt}, 'open', 1, 'bot')`,
  );
const apiKey = `INSERT INTO api_keys VALUES ('${KID}', 'k', 'secret', 'old', 'h', ${NOW - 200 * DAY}, NULL, NULL)`;
const directory = (keys: string, fetchedAt: number): Rest =>
  sql(
    `INSERT INTO agent_directories VALUES ('https://agent.example', 'listed', '${keys}', ${fetchedAt}, 1, 'it answered 404', NULL)`,
  );
const hook = (scheme: string) =>
  `INSERT INTO webhooks VALUES ('${KID}', 'wh_1', '${scheme}://hook.example', '[]', 0, 'x', 1)`;
const delivery = (state: string): Rest =>
  sql(
    hook('https'),
    `INSERT INTO webhook_outbox (kid, webhook, event, created_at, state, attempts, next_at)
     VALUES ('${KID}', 'wh_1', 'e', ${NOW - 2 * HOUR}, '${state}', 1, 1)`,
  );

/** Creates a configuration with TLS for id.shop.example. */
function tls({ host = 'id.shop.example', keyFile = 'server.key', bits = 0o600, now = NOW }): Rest {
  const folder = tempDir('tls');
  const path = (name: string): string => join(folder, name);
  return {
    env: { GPD_BASE_URL: `https://${host}`, GPD_TLS_CERT: path('server.crt'), GPD_TLS_KEY: path(keyFile) },
    files() {
      for (const [name, text] of Object.entries(selfSigned('named'))) writeFileSync(path(name), text);
      chmodSync(path(keyFile), bits);
    },
    ...(now !== NOW && { context: () => ({ now }) }),
  };
}

const HOST_ROWS: readonly Row[] = [
  fail('host.space', /50 MB of/, disk({ freeBytes: 5e7 })),
  warn('host.space', /4,000 MB/, disk({ freeBytes: 4e9, totalBytes: 1e12 })),
  warn('host.space', /inodes/, disk({ freeInodes: 0.001 })),
  warn('host.space', /a backup needs 100,000,000 MB/, file('gpd.db', { size: 50e12 })),
  warn('host.node', /^Node 18\.20\.1 gets no security fixes since 2025-04-30$/, {
    context: () => ({ nodeVersion: '18.20.1' }),
  }),
  warn('host.clock', /7 days ahead/, meta('newest-time', NOW - 7 * DAY - HOUR)),
  fail('host.clock', /refused until/, meta('newest-time', NOW + HOUR)),
  fail('host.clock', /refused until/, meta('nonces-forgotten-to', NOW + HOUR)),
  warn('host.clock', /45 seconds/, provider({ skewMs: -45_000 })),
  fail('host.clock', /6 minutes/, provider({ skewMs: 400_000 })),
  fail('data.directory', /does not exist/, { files: (dataDir) => rmSync(dataDir, { recursive: true }) }),
  fail('data.directory', /write to it \(777\)/, mode('.', 0o777)),
  warn('data.directory', /list it \(755\)/, mode('.', 0o755)),
  fail('data.directory', /user 1000.*user/, { context: () => ({ uid: 1000 }) }),
  warn('data.directory', /root.*user 990/, {
    context: (base) => ({ uid: 0, ...file('gpd-data', { uid: 990 }).context?.(base) }),
  }),
  warn('data.directory', /memory/, disk({ kind: 'tmpfs' })),
  fail('data.directory', /network/, disk({ kind: 'network' })),
  warn('data.directory', /staging-1-gpd\.db/, text('staging-1-gpd.db')),
  fail('data.database-file', /other users/, mode('gpd.db', 0o644)),
  fail('data.database-file', /user 990, its directory/, file('gpd.db', { uid: 990 })),
  warn('data.database-file', /200 MB/, file('gpd.db-wal', { size: 200e6 })),
  fail('data.database-file', /2,000 MB/, file('gpd.db-wal', { size: 2e9 })),
  warn('data.database-file', /2,000 MB.*waits/, file('gpd.db', { size: 2e9 })),
  fail('data.erasure-log', /line 1/, text('erasures.log', 'x\n')),
  warn('data.backup', /no backup was ever made/),
  warn('data.backup', /8 days old/, meta('last-backup', `{"at":${NOW - 8 * DAY - HOUR}}`)),
  fail('master-key.present', /missing/, { files: (dataDir) => rmSync(join(dataDir, 'master.key')) }),
  fail('master-key.present', /holds no master key/, text('master.key', 'x')),
  fail('master-key.present', /cannot be read: permission denied/, {
    context: ({ masterKey: read }) => ({
      masterKey: () => ({ ...read(), file: null, denied: true, key: null }),
    }),
  }),
  fail('master-key.present', /other users.*640/, mode('master.key', 0o640)),
  fail('master-key.present', /user 65534/, {
    context: ({ masterKey: read }) => {
      const { file: found, ...rest } = read();
      return { masterKey: () => ({ ...rest, file: found && { ...found, uid: 65_534 } }) };
    },
  }),
  fail('master-key.fits', /not the key/, text('master.key', Buffer.alloc(32, 1).toString('base64'))),
  fail('master-key.fits', /does not open/, sql("UPDATE tenant_secrets SET purpose = 'x' || purpose")),
  fail('master-key.fits', /the key that signs exports/, meta('archive-signer', '{"wrappedKey":"gone"}')),
  warn('master-key.fits', /interrupted/, text('master.key.new')),
  warn('master-key.escrow', /ever confirmed/),
];

const DATABASE_ROWS: readonly Row[] = [
  fail('database.reachable', /there is no database/, {
    files: (dataDir) => renameSync(join(dataDir, 'gpd.db'), join(dataDir, 'away')),
  }),
  fail('database.reachable', /cannot be read/, text('gpd.db', 'x'.repeat(8192))),
  fail('database.reachable', /moved to postgres/, meta('moved', 'postgres://db.internal/gpd')),
  fail('database.reachable', /interrupted/, meta('moving', 'x')),
  warn('database.reachable', /901 ms/, {
    context: ({ reachable }) => ({ seen: async () => ({ ...(await reachable()), answerMs: 900.2 }) }),
  }),
  fail('database.schema', /29991231/, migration('29991231_01_later.js')),
  fail('database.schema', /before gpd 0\.1\.0/, migration('20261120_01_a.js')),
  warn('database.schema', /1 migrations/, sql('DELETE FROM knex_migrations')),
  fail('database.schema', /missing: nonces/, sql('DROP TABLE nonces')),
  fail(
    'database.schema',
    /makes these: table stolen, trigger kept on nonces, view seen$/,
    sql(
      'CREATE TABLE stolen (x TEXT)',
      'CREATE TRIGGER kept BEFORE DELETE ON nonces BEGIN INSERT INTO stolen VALUES (OLD.nonce); END',
      'CREATE VIEW seen AS SELECT x FROM stolen',
    ),
  ),
  fail('database.integrity', /1 rows/, sql("INSERT INTO tenant_secrets VALUES ('went', 'x', 'y')")),
  warn('database.pooler', /no time limit/, pooling({ readLimit: '0' })),
  fail('database.pooler', /splits transactions/, pooling({ transactions: false })),
  warn('database.removals', /1 of went/, decision('went', 1)),
  fail('jobs.failing', /a-job of acme for 3 hours \(Error X\)/, failing('a-job', 'Error X')),
  warn('jobs.sweep', /1 hour ago/, meta('last-sweep', NOW - HOUR)),
  fail('jobs.sweep', /3 days ago/, meta('last-sweep', NOW - 3 * DAY)),
  warn('jobs.sweep', /2 hours ago/, {
    ...meta('last-sweep', NOW),
    ...server({ sweptAt: NOW - 2 * HOUR - 1000 }),
  }),
  warn('jobs.sweep', /1 nonces/, sql(`INSERT INTO nonces VALUES ('${KID}', 'n', 1)`)),
  warn('jobs.sweep', /not been anchored.*acme/, decision(KID, NOW - 6 * HOUR)),
  warn('jobs.retention', /3 days ago/, meta('last-retention', NOW - 3 * DAY)),
  fail('jobs.retention', /too long: acme/, decision(KID, NOW - 93 * DAY)),
  warn('identity.epochs', /is 7 here.*with 30/, {
    ...meta('epoch-length', '{"days":30,"before":30,"changedAt":null}'),
    ...env({ GPD_EPOCH_DAYS: '7' }),
  }),
  warn('identity.epochs', /from 7 to 30 2 days ago/, {
    ...meta('epoch-length', `{"days":30,"before":7,"changedAt":${NOW - 2 * DAY}}`),
    ...env({ GPD_EPOCH_DAYS: '30' }),
  }),
  fail('rights.erasures', /1 erasures/, erasure('open')),
  warn('rights.erasures', /2 days ago/, erasure('done')),
  fail('rights.contests', /1 contests/, contest(NOW - DAY)),
];

const AWAY = { GPD_OIDC_ISSUER: 'http://127.0.0.1:1' };

const NETWORK_ROWS: readonly Row[] = [
  warn('url.base', /not set/, env({ GPD_HOST: '0.0.0.0' })),
  fail('url.base', /plain http/, env({ GPD_BASE_URL: 'http://id.shop.example' })),
  fail('url.base', /https:\/\/x\.example/, env({ GPD_AUTHORITIES: 'https://x.example' })),
  fail('listen.address', /nothing terminates TLS/, env({ GPD_BASE_URL: 'https://id.shop.example' })),
  warn('listen.address', /plain http on 0\.0\.0\.0:9/, env({ GPD_HOST: '0.0.0.0' })),
  fail('listen.address', /0\.0\.0\.0:9100/, env({ GPD_METRICS_LISTEN: '0.0.0.0:9100' })),
  fail('listen.address', /metrics at \[::\]:9100/, env({ GPD_METRICS_LISTEN: '[::]:9100' })),
  fail('tls.certificate', /cannot be read/, env({ GPD_TLS_CERT: '/nowhere', GPD_TLS_KEY: '/nowhere' })),
  fail('tls.certificate', /belong together/, tls({ keyFile: 'ca.key' })),
  fail('tls.certificate', /host of the base URL/, tls({ host: 'other.example' })),
  fail('tls.certificate', /not valid yet/, tls({ now: NOW - 9 * DAY })),
  fail('tls.certificate', /expired \d+ days ago/, tls({ now: NOW + 500 * DAY })),
  warn('tls.certificate', /valid for \d days/, tls({ now: NOW + 390 * DAY })),
  fail('tls.certificate', /anyone can read/, tls({ bits: 0o644 })),
  fail('proxies.trust', /any client: 10\.0\.0\.0\/4/, env({ GPD_TRUSTED_PROXIES: '10.0.0.0/4' })),
  fail('proxies.trust', /sent X-Forwarded-For/, text('stranger-forwarded', `{"at":${NOW},"trusted":""}`)),
  warn('proxies.trust', /JA4/, env({ GPD_JA4_HEADER: 'x-ja4' })),
  warn('limits.rates', /GPD_RATE_INGEST/, env({ GPD_RATE_INGEST: 'off' })),
  fail('networks.mmdb', /MaxMind/, env({ GPD_MMDB_FILE: '/nowhere.mmdb' })),
  warn('server.health', /0\.0\.9 runs/, server({ health: { version: '0.0.9' } })),
  fail('server.health', /draining/, server({ notReady: ['draining'] })),
  warn('server.degraded', /slow/, server({ degraded: ['slow'] })),
  warn('oidc.issuer', /cannot sign in/),
  fail('oidc.issuer', /cannot sign in/, env(AWAY)),
  fail('oidc.issuer', /discovery document/, env({ ...AWAY, GPD_OIDC_AUDIENCE: 'gpd' })),
  fail('oidc.issuer', /P-256/, provider({ problem: 'JWKS: it holds no P-256 key' })),
  fail('oidc.issuer', /its issuer is not/, provider({ problem: 'discovery document: its issuer is not …' })),
  fail('console.client', /missing/, env({ GPD_CONSOLE_CLIENT_ID: 'console' })),
  fail('console.client', /other users/, {
    context: (base) => ({
      config: { ...base.config, console_client_secret_file: '/secret' },
      ...file('/secret', { mode: 0o644 }).context?.(base),
    }),
  }),
  warn('agents.directories', /agent\.example \(it answered 404\)/, directory('[]', NOW - 3 * DAY)),
  warn('agents.directories', /no usable key: https:\/\/agent/, directory('[]', NOW)),
  warn('webhooks.deliveries', /abandoned: acme wh_1 \(1\)/, delivery('failed')),
  warn('webhooks.deliveries', /acme wh_1 \(1, the oldest for 2 hours\)/, delivery('waiting')),
  warn('webhooks.deliveries', /plain http: acme wh_1/, sql(hook('http'))),
  warn('mail.relay', /GPD_SMTP_URL is not: acme/, setting('notify.email', '["dpo@shop.example"]')),
  fail('mail.relay', /./, env({ GPD_SMTP_URL: 'smtp://127.0.0.1:1', GPD_SMTP_FROM: 'gpd@shop.example' })),
];

const keys = (change: string): Rest => sql(`UPDATE seal_keys SET ${change}`);
const origins = (json: string): Rest => setting('origins', json);

const ownWords = sql("UPDATE purposes SET title = 'Our own words'");

const TENANT_ROWS: readonly Row[] = [
  fail('tenants.readable', /there is no tenant/, sql('DELETE FROM tenants')),
  fail('tenants.readable', /cannot be read: acme/, sql("UPDATE tenants SET settings = '{'")),
  fail(
    'tenants.readable',
    /weights.*acme/,
    sql(`INSERT INTO tenant_policies VALUES ('${KID}', 'live', '{')`),
  ),
  warn('tenants.origins', /no origin/, origins('[]')),
  warn('tenants.origins', /plain http/, origins('["http://shop.example"]')),
  warn('tenants.origins', /passkeys/, origins('["https://203.0.113.7"]')),
  warn('tenants.origins', /passkeys/, setting('attest.rpId', '"other.example"')),
  fail('keys.published', /not exactly one/, keys("state = 'staged'")),
  warn('keys.published', /shared key/, sql(`INSERT INTO tenant_secrets VALUES ('${KID}', 'symmetric', 'x')`)),
  warn('keys.age', /older than a year/, keys(`published_at = ${NOW - 400 * DAY}`)),
  warn('keys.age', /staged/, keys(`state = 'staged', created_at = ${NOW - 40 * DAY}`)),
  fail('keys.age', /grace/, keys(`state = 'retiring', retires_at = ${NOW - HOUR}`)),
  warn('apikeys.use', /no API key/),
  warn('apikeys.use', /half a year/, sql(apiKey)),
  fail('terms.purpose', /not defined/, sql('DELETE FROM purposes')),
  warn('terms.purpose', /no policy/, setting('consent.basis', '"ledger"')),
  fail('terms.notice', /responsible/),
  warn('terms.notice', /complain/),
  warn('terms.languages', /acme device-identification \(ar, bg, cs, da, de and 19 more\)/, ownWords),
  warn('terms.languages', /acme device-identification \(ar, bg, cs, da, el and 18 more\)/, {
    sql: [
      ...ownWords.sql,
      ...setting('banner.texts', '{"de":{"purposes":{"device-identification":{"title":"Unsere Worte"}}}}')
        .sql,
    ],
  }),
  warn('terms.gpc', /a fifth/, sql(visits({ all: 9, gpc: 2 }))),
  warn('agent.worker', /without the worker file/, sql(visits({ judged: 9, workerless: 5 }))),
  fail('consent.state', /without the key: acme/, sql("UPDATE purposes SET title = 'another'")),
  fail('log.entries', /does not match its head/, sql("UPDATE ledger_entries SET entry = '{}'")),
  fail('log.entries', /does not match its head/, sql('UPDATE ledger_heads SET size = size + 1')),
  fail('log.entries', /does not match its head/, sql('DELETE FROM ledger_heads')),
  fail('log.entries', /damaged: acme \(WrongMasterKey\)/, sql("UPDATE tenant_secrets SET wrapped = 'x'")),
  fail('log.witnesses', /acme: fork dpo/, notCosigned('fork')),
  warn('log.witnesses', /acme: unreachable dpo/, notCosigned('unreachable')),
  fail('log.origin', /before base_url was set/, env({ GPD_BASE_URL: 'https://id.shop.example' })),
  warn('log.origin', /another host/, sql("UPDATE ledger_heads SET origin = 'old.example/ledger/acme'")),
];

function visits(counts: Readonly<Record<string, number>>): string {
  const hour = Math.floor((NOW - DAY) / HOUR) * HOUR;
  const rows = Object.entries(counts).map(([name, n]) => `('${KID}', 'visit', ${hour}, '${name}', ${n})`);
  return `INSERT INTO tallies VALUES ${rows.join(', ')}`;
}

export const ROWS: readonly Row[] = [...HOST_ROWS, ...DATABASE_ROWS, ...NETWORK_ROWS, ...TENANT_ROWS];
