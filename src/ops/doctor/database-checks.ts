import { isUnreleased } from '../../db/migrate.ts';
import { DAY, HOUR, MINUTE } from '../../lib/clock.ts';
import { type Checks, fail, mega, noneOf, pass, read, skipped, some, span, warn } from './check.ts';
import type { DatabaseFacts } from './gather.ts';

/** The database, and what its jobs should have done by now. */

const only = (kind: DatabaseFacts['kind'], elsewhere: string) => (assess: Parameters<typeof read>[0]) =>
  read((database, facts) => (database.kind === kind ? assess(database, facts) : skipped(elsewhere)));
const sqlite = only('sqlite', 'the data are in PostgreSQL');
const postgres = only('postgres', 'the data are in SQLite');

const WANTED: Readonly<Record<string, string>> = {
  journal_mode: 'wal',
  synchronous: '2',
  foreign_keys: '1',
  secure_delete: '1',
  trusted_schema: '0',
};

/** One that failed just now may have had a reason that is over: its next run says. */
const FAILS_FOR = 10 * MINUTE;

const EPOCH_NEWS_MS = 30 * DAY;

export const DATABASE_CHECKS: Checks = {
  'database.reachable'({ database, config }) {
    if ('failure' in database) {
      return fail(
        database.failure,
        config.database_url === null
          ? 'Run gpd init or gpd restore, as the user that owns the data directory.'
          : 'Start PostgreSQL, and check GPD_DATABASE_URL.',
      );
    }
    const { movedTo, halfMoved } = database;
    if (movedTo !== null)
      return fail(`the data was moved to ${movedTo}`, 'Set GPD_DATABASE_URL to it, or unset it for a file.');
    if (halfMoved) return fail('a move into this database was interrupted', 'Repeat gpd move.');
    const took = `${database.version} answers in ${Math.ceil(database.answerMs)} ms`;
    return database.answerMs > 500
      ? warn(took, 'Look at the load of the machine and of its disk.')
      : pass(took);
  },
  'database.schema': read(({ pendingMigrations, unknownMigrations }) => {
    if (unknownMigrations.length > 0) {
      return isUnreleased(unknownMigrations)
        ? fail('made before gpd 0.1.0, the first release', 'Make a new installation with gpd init.')
        : fail(
            `a newer gpd has changed it (${some(unknownMigrations)})`,
            'Upgrade this gpd, or restore a backup.',
          );
    }
    if (pendingMigrations.length > 0)
      return warn(
        `${pendingMigrations.length} migrations are pending`,
        'Run gpd migrate, or start gpd serve.',
      );
    return pass('the schema is up to date');
  }),
  'database.tables': read(({ missingTables, pendingMigrations }) => {
    if (pendingMigrations.length > 0) return skipped('migrations are pending');
    return noneOf(missingTables, 'no table is missing', fail('missing'));
  }),
  'database.integrity': sqlite(({ integrity }) =>
    integrity.length === 0 ? pass('quick_check found no fault') : fail(`SQLite finds: ${integrity[0]}`),
  ),
  'database.references': sqlite(({ foreignKeys }) =>
    foreignKeys === 0 ? pass('every reference is valid') : fail(`${foreignKeys} rows refer to missing rows`),
  ),
  'database.orphans': read(({ orphans }) =>
    noneOf(
      orphans.map(({ kid, rows }) => `${rows.toLocaleString('en')} of ${kid}`),
      'every row belongs to a tenant',
      warn('rows belong to no tenant'),
    ),
  ),
  'database.removals': read(({ goingTenants }) =>
    noneOf(
      goingTenants,
      'no removal of a tenant is unfinished',
      warn('the removal of a tenant is unfinished'),
    ),
  ),
  'database.pragmas': sqlite(({ settings }) => {
    const off = Object.entries(WANTED).filter(([name, value]) => settings[name] !== value);
    return noneOf(
      off.map(([name]) => name),
      'write-ahead log, full sync, secure delete',
      fail('not the values that gpd sets'),
    );
  }),
  'database.durability': postgres(({ settings }) => {
    const off = ['fsync', 'full_page_writes', 'synchronous_commit'].filter(
      (name) => settings[name] === 'off',
    );
    if (off.length > 0)
      return fail(`${some(off)}: off. Answered writes can be lost when the machine of PostgreSQL stops.`);
    return settings['synchronous_commit'] === 'local'
      ? warn('synchronous_commit is local: a standby that takes over may lack answered writes')
      : pass('every answered write is on the disk');
  }),
  'database.logging': postgres(({ settings }) => {
    const logs = settings['log_statement'] !== 'none' || settings['log_min_duration_statement'] !== '-1';
    return logs && settings['log_parameter_max_length'] !== '0'
      ? warn('the log of PostgreSQL holds the parameters of statements: ids of devices and wrapped keys')
      : pass('the log of PostgreSQL holds no parameters');
  }),
  'database.wal': sqlite((_database, { data }) => {
    const size = `the write-ahead log is ${mega(data.walBytes)}`;
    if (data.walBytes > 1e9) return fail(size);
    return data.walBytes > 128e6 ? warn(size) : pass(size);
  }),
  'database.encrypted': read(({ kind, encrypted }) => {
    if (kind === 'sqlite' || encrypted === null) return skipped('no network in between');
    return encrypted
      ? pass('the connection is encrypted')
      : warn('the connection to PostgreSQL is not encrypted');
  }),
  'database.pooler': read(({ pooling }) => {
    if (!pooling) return skipped('the data are in SQLite');
    const { pooled, transactions, readLimit } = pooling;
    if (!transactions) {
      return fail(
        pooled
          ? 'the pooler in front of PostgreSQL splits transactions'
          : 'PostgreSQL cannot begin a transaction',
        'Set pool_mode = transaction in pgbouncer.ini: gpd cannot write anything in statement mode.',
      );
    }
    if (!pooled) return pass('connected directly to PostgreSQL');
    return readLimit === '0'
      ? warn(
          'through a pooler, where a read outside of a transaction has no time limit',
          "Run ALTER ROLE … SET statement_timeout = '9s' for the role in GPD_DATABASE_URL, and restart the pooler.",
        )
      : pass('through a pooler that keeps transactions together');
  }),
  'jobs.housekeeping': read(({ expiredNonces }) =>
    expiredNonces === 0
      ? pass('expired nonces are deleted')
      : warn(`${expiredNonces.toLocaleString('en')} nonces expired over an hour ago`),
  ),
  'jobs.failing': read(({ jobFailures, lastSweepAt }, { now }) => {
    const failing = jobFailures.filter(({ since }) => now - since > FAILS_FOR);
    if (failing.length > 0) {
      const said = failing.map(({ job, kid, since, reason }) => {
        return `${job}${kid === null ? '' : ` of ${kid}`} for ${span(now - since)} (${reason})`;
      });
      return fail(`a job is failing: ${some(said)}`);
    }
    return lastSweepAt === null ? skipped('no server has run its jobs yet') : pass('no job is failing');
  }),
  /** Of several nodes the one that is asked may fail at what is its own: its clock, or the files in its data directory. */
  'jobs.sweep': read(({ lastSweepAt }, { now, server }) => {
    if (lastSweepAt === null) return skipped('no server has run its jobs yet');
    const age = Math.max(0, now - Math.min(lastSweepAt, server.sweptAt ?? lastSweepAt));
    const detail = `the last complete sweep was ${span(age)} ago`;
    if (age > DAY) return fail(detail);
    return age > FAILS_FOR ? warn(detail) : pass(detail);
  }),
  'jobs.retention': read(({ lastRetentionAt }, { tenants, now }) => {
    if (tenants.length === 0) return skipped('there are no tenants');
    const overdue = tenants.filter(
      ({ oldestDecisionAt, retentionDays }) =>
        oldestDecisionAt !== null && now - oldestDecisionAt > (retentionDays + 2) * DAY,
    );
    if (overdue.length > 0)
      return fail(`decisions are kept too long: ${some(overdue.map(({ kid }) => kid))}`);
    if (lastRetentionAt === null) return pass('no decision is past the retention of its tenant');
    const age = Math.max(0, now - lastRetentionAt);
    const detail = `retention last ran for every tenant ${span(age)} ago`;
    return age > 2 * DAY ? warn(detail) : pass(detail);
  }),
  'jobs.seals'({ tenants, now }) {
    if (tenants.length === 0) return skipped('there are no tenants');
    const late = tenants.filter(
      ({ log }) => log?.unanchoredSince != null && now - log.unanchoredSince > 3 * HOUR,
    );
    return noneOf(
      late.map(({ kid, log }) => `${kid} since ${span(now - (log?.unanchoredSince ?? 0))}`),
      'every whole hour of verdicts is anchored in the log',
      warn('verdicts are not anchored in the log'),
    );
  },
  'identity.epochs': read(({ epochLength }, { config, now }) => {
    if (!epochLength) return skipped('no server has started yet');
    const { days, before, changedAt } = epochLength;
    if (days !== config.epoch_days) {
      return warn(
        `GPD_EPOCH_DAYS is ${config.epoch_days} here, and the server started with ${days}`,
        'Set it back, unless every device is to get a new visitorId with the next start.',
      );
    }
    if (changedAt !== null && now - changedAt < EPOCH_NEWS_MS) {
      return warn(
        `GPD_EPOCH_DAYS changed from ${before} to ${days} ${span(now - changedAt)} ago: every visitorId changed`,
        'If that was not meant, set it back and restart. Old visitorIds still lead to their devices.',
      );
    }
    return pass(`visitorIds rotate every ${days} days`);
  }),
  'rights.erasures': read(({ incompleteErasures, kind }, { config }) => {
    if (incompleteErasures === null) return skipped('there are no receipts yet');
    if (incompleteErasures === 0) return pass('no erasure has waited for more than five minutes');
    const waits = config.rewrite_window === null ? '' : ', or wait for the next GPD_REWRITE_WINDOW';
    return fail(
      `${incompleteErasures} erasures are incomplete`,
      kind === 'sqlite'
        ? `Run gpd erase resume in a quiet hour (it may rewrite the file)${waits}; see docs/operate/erasure-incomplete.md.`
        : 'Run gpd erase resume; docs/operate/erasure-incomplete.md says how to find what holds them up.',
    );
  }),
  'rights.storage': read(({ unscrubbedSince }, { now }) =>
    unscrubbedSince === null || now - unscrubbedSince < DAY
      ? pass('no erasure waits for a scrub for more than a day')
      : warn(`the files of PostgreSQL hold bytes of what was erased ${span(now - unscrubbedSince)} ago`),
  ),
  'rights.contests': read(({ overdueContests }) => {
    if (overdueContests === null) return skipped('there are no contests yet');
    return overdueContests === 0
      ? pass('no contest is overdue')
      : fail(`${overdueContests} contests are past their due date`);
  }),
};
