import { loadConfig } from '../../../src/config.ts';
import type { Facts } from '../../../src/ops/doctor/gather.ts';
import type { FileFact } from '../../../src/ops/doctor/gather-files.ts';
import type { TenantFacts } from '../../../src/ops/doctor/gather-tenants.ts';

/** An installation at which nothing is wrong, and what a test changes of it. */

export const NOW = Date.parse('2026-11-20T12:00:00Z');
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

export function makeFile(parts: Partial<FileFact> = {}): FileFact {
  return { path: '/data/x', uid: 990, mode: 0o600, size: 1e6, readable: true, ...parts };
}

const makeLog = (): NonNullable<TenantFacts['log']> => ({
  origin: 'id.shop.example/ledger/shop',
  entries: 12,
  size: 12,
  lastFits: true,
  headFits: true,
  newEntryProblem: null,
  checkpointProblem: null,
  unanchoredSince: null,
});

export function makeTenant(parts: Partial<TenantFacts> = {}): TenantFacts {
  return {
    kid: 'shop',
    origins: ['https://shop.example'],
    wantsMail: false,
    rpId: '',
    publishedKeys: 1,
    publishedAt: NOW - 10 * DAY,
    stagedAt: null,
    foreignKeys: [],
    overdueKeys: [],
    symmetric: false,
    activeApiKeys: 1,
    idleApiKeys: [],
    purposes: ['device-identification'],
    optsOut: true,
    visits: { all: 100, gpc: 20, judged: 100, workerless: 50 },
    basis: 'asserted',
    consentPolicies: 0,
    emptyNotices: [],
    badPolicy: false,
    retentionDays: 90,
    stateForged: false,
    oldestDecisionAt: NOW - 89 * DAY,
    log: makeLog(),
    ...parts,
  };
}

export function makeFacts(): Facts {
  const config = loadConfig({
    environment: {
      GPD_DATA_DIR: '/data',
      GPD_BASE_URL: 'https://id.shop.example',
      GPD_TRUSTED_PROXIES: '10.0.0.1',
      GPD_AUTHORITIES: 'id2.shop.example, [2001:db8::1]:8443',
      GPD_OIDC_ISSUER: 'https://login.example',
      GPD_OIDC_AUDIENCE: 'gpd',
      GPD_CONSOLE_CLIENT_ID: 'console',
      GPD_CONSOLE_CLIENT_SECRET_FILE: '/etc/gpd/console-secret',
      GPD_JA4_HEADER: 'x-ja4',
      GPD_MMDB_FILE: '/data/networks.mmdb',
      GPD_METRICS_LISTEN: '127.0.0.1:9100',
      GPD_TLS_CERT: '/etc/gpd/server.crt',
      GPD_TLS_KEY: '/etc/gpd/server.key',
    },
  });
  return {
    now: NOW,
    version: '0.1.0',
    config,
    host: {
      node: 'v22.3.0',
      uid: 990,
      freeBytes: 50e9,
      totalBytes: 100e9,
      freeInodes: 0.9,
      fileSystem: 'disk',
      unitCredential: { path: '/etc/gpd/master-key', file: makeFile({ uid: 0 }) },
    },
    data: {
      directory: makeFile({ path: '/data', mode: 0o700 }),
      database: makeFile({ path: '/data/gpd.db' }),
      walBytes: 1e6,
      leftovers: [],
      erasureLog: { lines: 3, problem: null },
      untrustedForwarded: null,
    },
    masterKey: {
      path: '/data/master.key',
      file: makeFile({ path: '/data/master.key' }),
      valid: true,
      opens: true,
      unopened: [],
      rewrapPending: false,
      escrow: { confirmedAt: 0, current: true },
    },
    database: {
      kind: 'sqlite',
      answerMs: 1,
      version: 'SQLite 3.52.0',
      settings: {
        journal_mode: 'wal',
        synchronous: '2',
        foreign_keys: '1',
        secure_delete: '1',
        trusted_schema: '0',
      },
      integrity: [],
      brokenErasureLog: null,
      foreignKeys: 0,
      orphans: [],
      goingTenants: [],
      pendingMigrations: [],
      unknownMigrations: [],
      missingTables: [],
      encrypted: null,
      movedTo: null,
      halfMoved: false,
      pooling: null,
      expiredNonces: 0,
      lastBackupAt: NOW - DAY,
      epochLength: { days: 30, before: 7, changedAt: NOW - 31 * DAY },
      lastSweepAt: NOW - 30_000,
      lastRetentionAt: NOW - HOUR,
      jobFailures: [],
      newestTime: NOW - HOUR,
      jobTime: NOW,
      forgottenTo: NOW - HOUR,
      undoneErasures: 0,
      incompleteErasures: 0,
      unscrubbedSince: null,
      overdueContests: 0,
    },
    tenants: [makeTenant()],
    damagedTenants: [],
    agents: [
      {
        url: 'https://agent.example',
        source: 'listed',
        fetchedAt: NOW - HOUR,
        failure: null,
        usableKeys: 1,
        inMilliseconds: 0,
      },
      {
        url: 'https://pinned.example',
        source: 'pinned',
        fetchedAt: null,
        failure: null,
        usableKeys: 1,
        inMilliseconds: 0,
      },
    ],
    webhooks: [{ name: 'shop wh_1', plain: false, failed: 0, waiting: 0, oldestWaitingAt: null }],
    tls: {
      readable: true,
      matches: true,
      validFrom: NOW - DAY,
      validTo: NOW + 90 * DAY,
      coversHost: true,
      keyFile: makeFile({ mode: 0o640 }),
    },
    mmdb: { readable: true, builtAt: NOW - 10 * DAY },
    consoleSecret: makeFile(),
    relay: { problem: null },
    oidc: { problem: null, usableKeys: 2, skewMs: 200 },
    server: {
      url: 'http://127.0.0.1:8080',
      health: { version: '0.1.0' },
      notReady: [],
      degraded: [],
      problem: null,
      sweptAt: NOW - 40_000,
    },
  };
}
