import { describe, expect, it } from 'vitest';
import { CHECKS, examine } from '../../../src/ops/doctor/doctor.ts';
import type { DatabaseFacts, Facts } from '../../../src/ops/doctor/gather.ts';
import type { TenantFacts } from '../../../src/ops/doctor/gather-tenants.ts';
import { DAY, HOUR, makeFacts, makeFile, makeTenant, NOW } from './support.ts';

type Change = Partial<Facts>;
type Row = readonly [id: string, status: 'warn' | 'fail', change: Change, detail: RegExp];

const base = makeFacts();
const config = (parts: Partial<Facts['config']>): Change => ({ config: { ...base.config, ...parts } });
const host = (parts: Partial<Facts['host']>): Change => ({ host: { ...base.host, ...parts } });
const data = (parts: Partial<Facts['data']>): Change => ({ data: { ...base.data, ...parts } });
const key = (parts: Partial<Facts['masterKey']>): Change => ({ masterKey: { ...base.masterKey, ...parts } });
const unheld = (parts: Partial<Facts['masterKey']>): Change => ({
  ...key(parts),
  ...host({ unitCredential: null }),
});
const pooling = (parts: Partial<DatabaseFacts['pooling']>): Change =>
  database({ pooling: { pooled: true, transactions: true, readLimit: '9s', ...parts } });
const database = (parts: Partial<DatabaseFacts>): Change => ({
  database: { ...(base.database as DatabaseFacts), ...parts },
});
const DURABLE = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  log_statement: 'none',
  log_min_duration_statement: '-1',
  log_parameter_max_length: '-1',
};
const postgres = (settings: Partial<typeof DURABLE>): Change =>
  database({ kind: 'postgres', settings: { ...DURABLE, ...settings } });
const tenant = (parts: Partial<TenantFacts>): Change => ({
  tenants: [makeTenant({ kid: 'good' }), makeTenant({ kid: 'bad-one', ...parts })],
});
const VISITS = { all: 0, gpc: 0, judged: 0, workerless: 0 };
const log = (parts: object): Change => {
  const { log: good } = makeTenant();
  return tenant({ log: good && { ...good, origin: 'id.shop.example/ledger/bad-one', ...parts } });
};
const agent = (parts: object): Change => ({ agents: base.agents.map((one) => ({ ...one, ...parts })) });
const webhook = (parts: object): Change => ({ webhooks: base.webhooks.map((one) => ({ ...one, ...parts })) });
const tls = (parts: object): Change => ({ tls: base.tls && { ...base.tls, ...parts } });
const oidc = (parts: Partial<Facts['oidc']>): Change => ({ oidc: base.oidc && { ...base.oidc, ...parts } });
const untrustedForwarded = (at: number, trusted = '10.0.0.1'): Change =>
  data({ untrustedForwarded: { at, trusted } });

const failing = (kid: string | null, since = NOW - 3 * HOUR): Change =>
  database({ jobFailures: [{ job: 'seal-verdicts', kid, reason: 'Error X', since }] });

const uncosigned = (reason: string): Change => ({
  ...config({ witnesses: ['KEY@https://dpo.example'] }),
  ...database({
    jobFailures: [
      {
        job: 'cosign-checkpoints',
        kid: 'bad-one',
        reason: `NotCosigned ${reason}`,
        since: NOW,
      },
    ],
  }),
});

/** What makes each check speak up; the last test counts that none is left out. */
const ROWS: readonly Row[] = [
  ['host.node', 'fail', host({ node: 'v20.18.3' }), /20\.18/],
  ['host.node', 'fail', host({ node: 'v18.20.0' }), /18/],
  ['host.user', 'warn', host({ uid: 0 }), /root/],
  ['host.user', 'fail', host({ uid: 1000 }), /user 1000.*user 990/],
  ['host.clock', 'fail', { now: Date.parse('2019-01-01T00:00:00Z') }, /before gpd/],
  ['clock.ahead', 'warn', database({ newestTime: NOW - 7 * DAY }), /7 days ahead/],
  ['clock.behind', 'fail', database({ newestTime: NOW + HOUR }), /refused until 2026-11-20T12:55/],
  ['clock.behind', 'fail', database({ forgottenTo: NOW + HOUR }), /refused until 2026-11-20T13:00/],
  ['host.space', 'fail', host({ freeBytes: 5e7 }), /50 MB of/],
  ['host.space', 'warn', host({ freeBytes: 4e9, totalBytes: 1e12 }), /4,000 MB/],
  ['host.space', 'warn', data({ database: makeFile({ size: 30e9 }) }), /a backup needs 60,000 MB/],
  ['host.inodes', 'warn', host({ freeInodes: 0.001 }), /0 %/],
  [
    'host.credential',
    'fail',
    host({ unitCredential: { path: '/etc/k', file: null } }),
    /\/etc\/k.*does not exist/,
  ],
  [
    'host.credential',
    'fail',
    host({ unitCredential: { path: '/etc/k', file: makeFile({ mode: 0o644 }) } }),
    /other users can read \/etc\/k/,
  ],
  ['data.file-system', 'warn', host({ fileSystem: 'tmpfs' }), /memory/],
  ['data.file-system', 'fail', host({ fileSystem: 'network' }), /network/],
  ['data.directory', 'fail', data({ directory: null }), /\/data does not exist/],
  ['data.directory', 'fail', data({ directory: makeFile({ mode: 0o777 }) }), /write.*777/],
  ['data.directory', 'warn', data({ directory: makeFile({ mode: 0o755 }) }), /list.*755/],
  ['data.database-file', 'fail', data({ database: null }), /no database/],
  ['data.database-file', 'fail', data({ database: makeFile({ mode: 0o644 }) }), /read the database/],
  ['data.database-file', 'fail', data({ database: makeFile({ uid: 0 }) }), /user 0.*990/],
  ['data.leftovers', 'warn', data({ leftovers: ['staging-1-gpd.db'] }), /staging-1-gpd\.db/],
  ['data.restore', 'warn', database({ undoneErasures: 2 }), /2 erasures are newer/],
  ['data.erasure-log', 'fail', data({ erasureLog: { lines: 0, problem: 'line 2 is damaged' } }), /line 2/],
  ['data.backup', 'warn', database({ lastBackupAt: null }), /no backup was ever made/],
  ['data.backup', 'warn', database({ lastBackupAt: NOW - 8 * DAY }), /8 days old/],
  ['master-key.present', 'fail', unheld({ file: null }), /missing/],
  ['master-key.present', 'fail', unheld({ file: makeFile({ readable: false }) }), /not readable/],
  [
    'master-key.present',
    'fail',
    { ...key({ file: null }), ...config({ master_key_file: '/etc/other' }) },
    /missing/,
  ],
  ['master-key.present', 'fail', key({ valid: false }), /holds no master key/],
  ['master-key.mode', 'fail', key({ file: makeFile({ mode: 0o640 }) }), /640/],
  ['master-key.owner', 'fail', key({ file: makeFile({ uid: 65_534 }) }), /user 65534/],
  ['master-key.fits', 'fail', key({ opens: false }), /not the key/],
  ['master-key.secrets', 'fail', key({ unopened: ['seal key 2 of shop'] }), /seal key 2 of shop/],
  ['master-key.rewrap', 'warn', key({ rewrapPending: true }), /interrupted/],
  ['master-key.escrow', 'warn', key({ escrow: null }), /ever confirmed/],
  ['master-key.escrow', 'warn', key({ escrow: { confirmedAt: 0, current: false } }), /earlier master key/],
  ['database.reachable', 'fail', { database: { failure: 'ECONNREFUSED' } }, /ECONNREFUSED/],
  ['database.reachable', 'warn', database({ answerMs: 900.2 }), /901 ms/],
  ['database.schema', 'fail', database({ unknownMigrations: ['29991231_01_later.js'] }), /29991231/],
  [
    'database.schema',
    'fail',
    database({ unknownMigrations: ['20261120_01_tenants.js'] }),
    /before gpd 0\.1\.0/,
  ],
  ['database.schema', 'warn', database({ pendingMigrations: ['a', 'b'] }), /2 migrations/],
  ['database.tables', 'fail', database({ missingTables: ['nonces'] }), /nonces/],
  ['database.integrity', 'fail', database({ integrity: ['Tree 5 page 9: never used'] }), /Tree 5/],
  ['database.references', 'fail', database({ foreignKeys: 3 }), /3 rows/],
  ['database.removals', 'warn', database({ goingTenants: ['went'] }), /went/],
  ['database.orphans', 'warn', database({ orphans: [{ kid: 'went', rows: 1234 }] }), /1,234 of went/],
  [
    'database.pragmas',
    'fail',
    database({ settings: { ...(base.database as DatabaseFacts).settings, secure_delete: '0' } }),
    /secure_delete/,
  ],
  ['database.wal', 'warn', data({ walBytes: 200e6 }), /200 MB/],
  ['database.wal', 'fail', data({ walBytes: 2e9 }), /2,000 MB/],
  ['data.rewrite', 'warn', data({ database: makeFile({ size: 2e9 }) }), /2,000 MB/],
  ['database.durability', 'fail', postgres({ fsync: 'off' }), /fsync: off/],
  ['database.durability', 'fail', postgres({ synchronous_commit: 'off' }), /synchronous_commit: off/],
  ['database.durability', 'warn', postgres({ synchronous_commit: 'local' }), /is local/],
  ['database.logging', 'warn', postgres({ log_statement: 'all' }), /parameters/],
  ['database.logging', 'warn', postgres({ log_min_duration_statement: '500' }), /parameters/],
  ['database.encrypted', 'warn', database({ kind: 'postgres', encrypted: false }), /not encrypted/],
  ['database.pooler', 'warn', pooling({ readLimit: '0' }), /no time limit/],
  ['database.pooler', 'fail', pooling({ transactions: false }), /splits transactions/],
  ['jobs.housekeeping', 'warn', database({ expiredNonces: 1234 }), /1,234 nonces/],
  ['jobs.failing', 'fail', failing('bbb'), /seal-verdicts of bbb for 3 hours \(Error X\)/],
  ['jobs.failing', 'fail', failing(null), /seal-verdicts for 3 hours/],
  ['jobs.sweep', 'warn', database({ lastSweepAt: NOW - HOUR }), /1 hour ago/],
  ['jobs.sweep', 'warn', { server: { ...base.server, sweptAt: NOW - HOUR } }, /1 hour ago/],
  ['jobs.sweep', 'fail', database({ lastSweepAt: NOW - 3 * DAY }), /3 days ago/],
  ['jobs.retention', 'warn', database({ lastRetentionAt: NOW - 3 * DAY }), /3 days ago/],
  ['jobs.retention', 'fail', tenant({ oldestDecisionAt: NOW - 93 * DAY }), /bad-one/],
  ['jobs.seals', 'warn', log({ unanchoredSince: NOW - 5 * HOUR }), /bad-one since 5 hours/],
  ['identity.epochs', 'warn', config({ epoch_days: 7 }), /is 7 here, and the server started with 30/],
  [
    'identity.epochs',
    'warn',
    database({ epochLength: { days: 30, before: 7, changedAt: NOW - 2 * DAY } }),
    /changed from 7 to 30 2 days ago/,
  ],
  ['rights.erasures', 'fail', database({ incompleteErasures: 2 }), /2 erasures/],
  ['rights.storage', 'warn', database({ unscrubbedSince: NOW - 2 * DAY }), /2 days ago/],
  ['rights.contests', 'fail', database({ overdueContests: 1 }), /1 contests/],
  ['url.base', 'warn', config({ base_url: null, host: '0.0.0.0' }), /not set/],
  ['url.https', 'fail', config({ base_url: 'http://id.shop.example' }), /plain http/],
  ['url.authorities', 'fail', config({ authorities: ['https://x.example'] }), /https:\/\/x\.example/],
  ['tls.end', 'fail', config({ tls_cert: null, tls_key: null, trusted_proxies: [] }), /no TLS termination/],
  ['tls.certificate', 'fail', tls({ readable: false }), /cannot be read/],
  ['tls.certificate', 'fail', tls({ matches: false }), /belong together/],
  ['tls.certificate', 'fail', tls({ validFrom: NOW + DAY }), /not valid yet/],
  ['tls.certificate', 'fail', tls({ validTo: NOW - 2 * DAY }), /2 days ago/],
  ['tls.certificate', 'fail', tls({ coversHost: false }), /host of the base URL/],
  ['tls.certificate', 'warn', tls({ validTo: NOW + 13 * DAY }), /13 days/],
  ['tls.key', 'fail', tls({ keyFile: makeFile({ mode: 0o644 }) }), /anyone can read/],
  ['listen.address', 'warn', config({ host: '0.0.0.0', tls_cert: null, tls_key: null }), /0\.0\.0\.0:8080/],
  ['proxies.ranges', 'fail', config({ trusted_proxies: ['10.0.0.1', '0.0.0.0/0'] }), /0\.0\.0\.0\/0/],
  ['proxies.strangers', 'fail', untrustedForwarded(NOW - 2 * HOUR), /X-Forwarded-For 2 hours ago/],
  ['proxies.ja4', 'warn', config({ trusted_proxies: [] }), /no proxy/],
  [
    'limits.rates',
    'warn',
    config({ rate_ingest: null, rate_consent: null }),
    /GPD_RATE_INGEST, GPD_RATE_CONSENT/,
  ],
  ['networks.mmdb', 'fail', { mmdb: { readable: false, builtAt: 0 } }, /cannot be read/],
  ['networks.mmdb', 'warn', { mmdb: { readable: true, builtAt: NOW - 61 * DAY } }, /61 days/],
  ['metrics.listen', 'fail', config({ metrics_listen: '0.0.0.0:9100' }), /0\.0\.0\.0:9100/],
  ['metrics.listen', 'fail', config({ metrics_listen: '[::]:9100' }), /other machines/],
  ['server.health', 'warn', { server: { ...base.server, health: { version: '0.0.9' } } }, /0\.0\.9 runs/],
  ['server.degraded', 'warn', { server: { ...base.server, degraded: ['slow'] } }, /slow/],
  ['server.ready', 'fail', { server: { ...base.server, notReady: ['draining'] } }, /draining/],
  ['oidc.issuer', 'warn', { ...config({ oidc_issuer: null }), oidc: null }, /401/],
  ['oidc.audience', 'fail', config({ oidc_audience: null }), /401/],
  ['oidc.discovery', 'fail', oidc({ problem: 'discovery document: it answered 404 and not 200' }), /404/],
  [
    'oidc.same-issuer',
    'fail',
    oidc({ problem: 'discovery document: its issuer is not exactly GPD_OIDC_ISSUER' }),
    /is not exactly GPD_OIDC_ISSUER/,
  ],
  ['oidc.keys', 'fail', oidc({ problem: 'JWKS: it holds no P-256 key' }), /P-256/],
  ['oidc.clock', 'warn', oidc({ skewMs: -45_000 }), /45 seconds/],
  ['oidc.clock', 'fail', oidc({ skewMs: 400_000 }), /6 minutes/],
  ['console.client', 'fail', config({ console_client_id: null }), /no client id/],
  ['console.client', 'fail', config({ oidc_issuer: null }), /no issuer/],
  ['console.client', 'fail', { consoleSecret: null }, /cannot be read/],
  ['console.client', 'fail', { consoleSecret: makeFile({ mode: 0o644 }) }, /other users can read/],
  ['tenants.any', 'fail', { tenants: [] }, /no tenant/],
  ['tenants.readable', 'fail', { damagedTenants: ['bbb'] }, /bbb/],
  [
    'tenants.origins',
    'fail',
    tenant({ origins: ['https://shop.example', 'https://*.shop.example'] }),
    /bad-one \(https:\/\/\*\.shop\.example\)/,
  ],
  ['tenants.origins', 'warn', tenant({ origins: [] }), /bad-one/],
  ['tenants.plain-origins', 'warn', tenant({ origins: ['http://shop.example'] }), /bad-one/],
  ['tenants.relying-party', 'warn', tenant({ origins: ['https://203.0.113.7'] }), /bad-one/],
  ['tenants.relying-party', 'warn', tenant({ rpId: 'other.example' }), /bad-one/],
  ['keys.published', 'fail', tenant({ publishedKeys: 0 }), /bad-one/],
  ['keys.public', 'fail', tenant({ foreignKeys: [2] }), /bad-one 2/],
  ['keys.age', 'warn', tenant({ publishedAt: NOW - 400 * DAY }), /bad-one/],
  ['keys.staged', 'warn', tenant({ stagedAt: NOW - 40 * DAY }), /bad-one/],
  ['keys.retiring', 'fail', tenant({ overdueKeys: [NOW - HOUR] }), /bad-one/],
  ['keys.symmetric', 'warn', tenant({ symmetric: true }), /bad-one/],
  ['apikeys.any', 'warn', tenant({ activeApiKeys: 0 }), /bad-one/],
  ['apikeys.idle', 'warn', tenant({ idleApiKeys: ['old'] }), /bad-one/],
  ['terms.purpose', 'fail', tenant({ purposes: ['marketing'] }), /bad-one/],
  ['terms.policy', 'warn', tenant({ basis: 'ledger' }), /bad-one/],
  ['terms.notice', 'fail', tenant({ emptyNotices: ['notice.contact'] }), /bad-one/],
  ['terms.notice', 'fail', tenant({ emptyNotices: ['notice.controller'] }), /bad-one/],
  ['terms.notice', 'warn', tenant({ emptyNotices: ['notice.authority'] }), /bad-one/],
  ['terms.gpc', 'warn', tenant({ visits: { ...VISITS, all: 9, gpc: 2 } }), /bad-one/],
  ['agent.worker', 'warn', tenant({ visits: { ...VISITS, judged: 9, workerless: 5 } }), /bad-one/],
  ['terms.weights', 'fail', tenant({ badPolicy: true }), /bad-one/],
  ['log.entries', 'fail', tenant({ log: null }), /bad-one/],
  ['log.entries', 'fail', log({ entries: 11 }), /bad-one/],
  ['log.entries', 'fail', log({ lastFits: false }), /bad-one/],
  ['log.entries', 'fail', log({ headFits: false }), /bad-one/],
  ['consent.state', 'fail', tenant({ stateForged: true }), /bad-one/],
  ['log.witnesses', 'warn', uncosigned('unreachable dpo.example/w'), /bad-one: unreachable dpo/],
  ['log.witnesses', 'fail', uncosigned('fork dpo.example/w'), /bad-one: fork dpo/],
  ['log.checkpoint', 'fail', log({ checkpointProblem: 'a line is missing' }), /bad-one: a line is missing/],
  ['log.new-entries', 'fail', log({ newEntryProblem: 'hour-repeated: entry 9' }), /bad-one: hour-repeated/],
  ['log.origin', 'warn', log({ origin: 'old.example/ledger/bad-one' }), /bad-one/],
  ['log.origin', 'fail', log({ origin: '127.0.0.1:8080/ledger/bad-one' }), /bad-one/],
  ['database.reachable', 'fail', database({ movedTo: 'postgres db.internal/gpd' }), /moved to postgres db/],
  ['database.reachable', 'fail', database({ halfMoved: true }), /interrupted/],
  [
    'agents.fresh',
    'warn',
    agent({ fetchedAt: NOW - 3 * DAY, failure: 'it answered 404' }),
    /agent\.example \(it answered 404\)/,
  ],
  ['agents.keys', 'warn', agent({ usableKeys: 0 }), /agent\.example/],
  ['agents.keys', 'warn', agent({ inMilliseconds: 1 }), /in milliseconds.*agent\.example/],
  ['webhooks.failed', 'warn', webhook({ failed: 3 }), /wh_1 \(3\)/],
  [
    'webhooks.backlog',
    'warn',
    webhook({ waiting: 9, oldestWaitingAt: NOW - 2 * HOUR }),
    /9, the oldest for 2 hours/,
  ],
  ['mail.relay', 'fail', { relay: { problem: 'the relay answered 535' } }, /535/],
  ['mail.relay', 'warn', { relay: null, tenants: [makeTenant({ wantsMail: true })] }, /shop/],
  ['webhooks.plain', 'warn', webhook({ plain: true }), /wh_1/],
];

const found = (facts: Facts, id: string) => examine(facts).checks.find((check) => check.id === id);

describe('gpd doctor', () => {
  it('has nothing to say where nothing is wrong', () => {
    const { ok, counts, checks } = examine(base);
    expect(checks.filter(({ status }) => status === 'warn' || status === 'fail')).toEqual([]);
    expect(ok).toBe(true);
    expect(counts.pass + counts.skipped).toBe(Object.keys(CHECKS).length);
    // Not on this database, or not yet.
    expect(checks.filter(({ status }) => status === 'skipped').map(({ id }) => id)).toEqual([
      'database.durability',
      'database.logging',
      'database.encrypted',
      'database.pooler',
      'log.witnesses',
    ]);
  });

  it('has nothing to say of a PostgreSQL that keeps what it acknowledged', () => {
    const { checks } = examine({ ...base, ...postgres({}) });
    const said = checks.filter(({ id }) => id === 'database.durability' || id === 'database.logging');
    expect(said.map(({ status }) => status)).toEqual(['pass', 'pass']);
  });

  it.each(ROWS)('%s: %s', (id, status, change, detail) => {
    const result = found({ ...base, ...change }, id);
    expect(result).toMatchObject({ status });
    expect(result?.detail).toMatch(detail);
    // One sentence that a person can follow: it ends, and it is no list of causes.
    expect(result?.remedy).toMatch(/^[A-Zc].{8,}[^\s]$/);
  });

  it('has at least 40 checks, each with its own name and a way to speak up', () => {
    const ids = Object.keys(CHECKS);
    expect(ids.length).toBeGreaterThanOrEqual(40);
    expect([...new Set(ROWS.map(([id]) => id))].sort()).toEqual([...ids].sort());
  });

  it('only a fail fails', () => {
    const warned = examine({ ...base, ...host({ uid: 0 }) });
    expect(warned).toMatchObject({ ok: true, counts: { warn: 1, fail: 0 } });
    expect(examine({ ...base, ...unheld({ file: null }) }).ok).toBe(false);
  });

  it.each([
    ['tried, by root', key({ path: '/etc/gpd/master-key' })],
    ['out of this user’s reach', key({ file: null, valid: false, opens: null })],
  ])('a master key that the unit holds is no fault: %s', (_name, change) => {
    const result = found({ ...base, ...change }, 'master-key.present');
    expect(result).toMatchObject({ status: 'pass' });
    expect(result?.detail).toMatch(/^held by the unit \(\/etc\/gpd\/master-key\)/);
  });

  it('skips what cannot be judged instead of passing it', () => {
    const gone = { ...base, database: { failure: 'gone' }, tenants: [], agents: [], webhooks: [] };
    const passed = examine(gone).checks.filter(({ status }) => status === 'pass');
    const about = passed.filter(({ id }) => /^(?:database|jobs|rights|tenants|keys|log|terms)\./.test(id));
    expect(about.map(({ id }) => id)).toEqual([]);
  });

  it.each([
    ['an old note', untrustedForwarded(NOW - 2 * DAY)],
    ['a note from before the proxies were named', untrustedForwarded(NOW - HOUR, '')],
  ])('%s of strangers is no fault', (_name, change) => {
    expect(found({ ...base, ...change }, 'proxies.strangers')).toMatchObject({ status: 'pass' });
  });

  it('a job that failed a moment ago has the time of a few runs', () => {
    expect(found({ ...base, ...failing('bbb', NOW - 9 * 60_000) }, 'jobs.failing')).toMatchObject({
      status: 'pass',
    });
  });

  it('names five and counts the rest', () => {
    const tenants = Array.from({ length: 9 }, (_, i) => makeTenant({ kid: `t${i}`, origins: [] }));
    expect(found({ ...base, tenants }, 'tenants.origins')?.detail).toMatch(/t0, t1, t2, t3, t4 and 4 more$/);
  });
});
