import { keepNoncesFrom } from '../../db/clock-rule-store.ts';
import { quickCheck } from '../../db/database-file.ts';
import { readForeignObjects } from '../../db/foreign-objects.ts';
import { LAST_RETENTION, LAST_SWEEP, MOVED, MOVING, readMeta, readMetaNumber } from '../../db/meta-store.ts';
import { isUnreleased } from '../../db/migrate.ts';
import { readEpochLength } from '../../ingest/epoch-length-store.ts';
import { DAY, HOUR, MINUTE, SECOND } from '../../lib/clock.ts';
import { unanchoredSince } from '../../log/anchors-store.ts';
import { TABLES } from '../../rights/person-map.ts';
import { oldestDueDecision } from '../../rights/retention/store.ts';
import { countOrphanRows } from '../../rights/tenant-rows-store.ts';
import { listTenantsInRemoval } from '../../tenants/tenant-store.ts';
import { readJobFailures } from '../job-store.ts';
import { type Check, ofTenants } from './check.ts';
import type { DoctorContext } from './context-service.ts';
import { about, type Findings, fail, listSome, pass, perTenant, Skipped, span, warn } from './finding.ts';
import {
  countOrphans,
  expiredNonces,
  incompleteErasures,
  isEncrypted,
  overdueContests,
  readDatabaseSettings,
  unscrubbedSince,
} from './inspect-store.ts';

/** Checks of the database, and of the jobs that a server should have run by now. */

async function* checkReachable({ seen: inspect }: DoctorContext): Findings {
  const found = await inspect();
  if ('failure' in found) {
    yield fail(found.failure, found.remedy);
    return;
  }
  const { database, missing, version, answerMs } = found;
  const meta = (name: string) => (missing.length > 0 ? null : readMeta(database, name));
  const moved = await meta(MOVED);
  if (moved !== null)
    yield fail(`the data was moved to ${moved}`, 'Set GPD_DATABASE_URL to it, or unset it for a file.');
  if ((await meta(MOVING)) !== null)
    yield fail('a move into this database was interrupted', 'Repeat gpd move.');
  const answerText = `${version} answers in ${Math.ceil(answerMs)} ms`;
  if (answerMs > 500) yield warn(answerText, 'Look at the load of the machine and of its disk.');
  yield pass(answerText);
}

async function* checkSchema({ reachable }: DoctorContext): Findings {
  const { database, pending, unknown, missing } = await reachable();
  if (isUnreleased(unknown))
    yield fail('made before gpd 0.1.0, the first release', 'Make a new installation with gpd init.');
  else if (unknown.length > 0)
    yield fail(`a newer gpd has changed it (${listSome(unknown)})`, 'Upgrade this gpd, or restore a backup.');
  if (pending.length > 0)
    yield warn(`${pending.length} migrations are pending`, 'Run gpd migrate, or start gpd serve.');
  else yield* about(missing, fail('tables are missing', 'Restore a backup.'));
  if (unknown.length > 0) return;
  const remedy =
    'They can keep erased rows and undo what gpd changes: find out who made them, then drop them or restore an earlier backup.';
  yield* about(await readForeignObjects(database, TABLES), fail('no migration of gpd makes these', remedy));
}

async function* checkIntegrity({ reachable }: DoctorContext): Findings {
  const { database } = await reachable();
  if (database.kind !== 'sqlite') throw new Skipped('the data are in PostgreSQL');
  const remedy = 'Stop the server, copy the data directory, and restore the last backup.';
  const [fault] = await quickCheck(database);
  if (fault !== undefined) yield fail(`SQLite finds: ${fault.replace(/[\p{Cc}\p{Cf}]+/gu, ' ')}`, remedy);
  const orphans = await countOrphans(database);
  if (orphans > 0) yield fail(`${orphans} rows refer to missing rows, deleted by hand`, remedy);
}

const PRAGMAS: Readonly<Record<string, string>> = {
  journal_mode: 'wal',
  synchronous: '2',
  foreign_keys: '1',
  secure_delete: '1',
  trusted_schema: '0',
};

async function* checkDurability({ reachable }: DoctorContext): Findings {
  const { database } = await reachable();
  const settings = await readDatabaseSettings(database);
  if (database.kind === 'sqlite') {
    const wrongSettings = Object.keys(PRAGMAS).filter((name) => settings[name] !== PRAGMAS[name]);
    const remedy = 'The file system or another program forbids them: use a local disk for gpd alone.';
    yield* about(wrongSettings, fail('not the values that gpd sets', remedy));
    return;
  }
  const remedy =
    'Set fsync, full_page_writes and synchronous_commit to on in postgresql.conf, and reload PostgreSQL.';
  const names = ['fsync', 'full_page_writes', 'synchronous_commit'];
  const wrongSettings = names.filter((name) => settings[name] === 'off');
  yield* about(
    wrongSettings,
    fail('answered writes can be lost when the machine of PostgreSQL stops: off', remedy),
  );
  if (settings['synchronous_commit'] === 'local')
    yield warn('synchronous_commit is local: a standby that takes over may lack answered writes', remedy);
}

async function* checkExposure({ reachable }: DoctorContext): Findings {
  const { database } = await reachable();
  if (database.kind === 'sqlite') throw new Skipped('the data are in SQLite');
  const settings = await readDatabaseSettings(database);
  const logs = settings['log_statement'] !== 'none' || settings['log_min_duration_statement'] !== '-1';
  if (logs && settings['log_parameter_max_length'] !== '0') {
    yield warn(
      'the log of PostgreSQL holds the parameters of statements: ids of devices and wrapped keys',
      'Set log_parameter_max_length to 0 in postgresql.conf, and reload PostgreSQL.',
    );
  }
  if ((await isEncrypted(database)) === false)
    yield warn('the connection is not encrypted', 'Add ?sslmode=verify-full to GPD_DATABASE_URL.');
}

async function* checkPooler({ reachable }: DoctorContext): Findings {
  const { pooling } = await reachable();
  if (!pooling) throw new Skipped('the data are in SQLite');
  const { pooled, transactions, readLimit } = pooling;
  if (!transactions) {
    yield fail(
      pooled
        ? 'the pooler in front of PostgreSQL splits transactions'
        : 'PostgreSQL cannot begin a transaction',
      'Set pool_mode = transaction in pgbouncer.ini: gpd cannot write anything in statement mode.',
    );
  } else if (pooled && readLimit === '0') {
    yield warn(
      'through a pooler, where a read outside of a transaction has no time limit',
      "Run ALTER ROLE … SET statement_timeout = '9s' for the role in GPD_DATABASE_URL, and restart the pooler.",
    );
  }
  if (!pooled) yield pass('connected directly to PostgreSQL');
}

async function* checkRemovals({ data }: DoctorContext): Findings {
  const database = await data();
  const remedy = 'If no gpd tenants remove is running, run gpd tenants remove KID: it finishes the removal.';
  const removing = await listTenantsInRemoval(database);
  yield* about(removing, warn('the removal of a tenant is unfinished', perTenant(remedy, removing)));
  const orphans = await countOrphanRows(database);
  const names = orphans.map(({ kid, rows }) => `${rows.toLocaleString('en')} of ${kid}`);
  const clean = 'Start gpd serve, which removes them within the hour, or run gpd tenants remove KID.';
  const kids = orphans.map(({ kid }) => kid);
  yield* about(names, warn('rows belong to no tenant', perTenant(clean, kids)));
}

/** A younger failure may be over already: the job runs again within minutes. */
const FAILS_FOR = 10 * MINUTE;

const NO_SERVER = 'no server has run its jobs yet';
const LOOK_REMEDY = 'Start gpd serve, and look for sweep-failed in its log.';

async function* checkFailing({ data, now }: DoctorContext): Findings {
  const database = await data();
  const failing = (await readJobFailures(database)).filter(({ since }) => now - since > FAILS_FOR);
  const names = failing.map(({ job, kid, since, reason }) => {
    return `${job}${kid === null ? '' : ` of ${kid}`} for ${span(now - since)} (${reason})`;
  });
  yield* about(names, fail('a job is failing', 'Look for sweep-failed in the log of gpd serve.'));
  if ((await readMetaNumber(database, LAST_SWEEP)) === null) throw new Skipped(NO_SERVER);
}

/** The node's own sweep counts too: it may fail at its clock or data directory while other nodes succeed. */
async function* checkSweep(context: DoctorContext): Findings {
  const { data, now, server, config } = context;
  const [database, jobNow] = [await data(), await context.jobTime()];
  const noncesFrom = keepNoncesFrom(jobNow, config.max_clock_skew * SECOND);
  const nonces = await expiredNonces(database, noncesFrom - HOUR);
  if (nonces > 0) yield warn(`${nonces.toLocaleString('en')} nonces expired over an hour ago`, LOOK_REMEDY);
  const swept = await readMetaNumber(database, LAST_SWEEP);
  const age = swept === null ? 0 : now - Math.min(swept, (await server()).sweptAt ?? swept);
  const detail = `the last complete sweep was ${span(age)} ago`;
  const createFinding = age > DAY ? fail : warn;
  if (age > FAILS_FOR) yield createFinding(detail, LOOK_REMEDY);
  const unanchored = warn('verdicts have not been anchored in the log for hours', LOOK_REMEDY);
  yield* ofTenants(context, unanchored, async ({ kid }) => {
    const since = await unanchoredSince(database, kid, jobNow);
    return since !== null && jobNow - since > 3 * HOUR;
  });
  if (swept === null) throw new Skipped(NO_SERVER);
  yield pass(detail);
}

async function* checkRetention(context: DoctorContext): Findings {
  const [database, jobNow] = [await context.data(), await context.jobTime()];
  const remedy = 'Run gpd retention run, and daily by a timer.';
  // Rows that an open contest or a legal hold keeps are not due.
  yield* ofTenants(context, fail('decisions are kept too long', remedy), async ({ kid, settings }) => {
    const oldest = await oldestDueDecision(database, kid, jobNow);
    return oldest !== null && jobNow - oldest > (settings['retention.days'] + 2) * DAY;
  });
  const age = jobNow - ((await readMetaNumber(database, LAST_RETENTION)) ?? jobNow);
  if (age > 2 * DAY) yield warn(`retention last ran for every tenant ${span(age)} ago`, remedy);
}

const EPOCH_NEWS_MS = 30 * DAY;

async function* checkEpochs({ data, config, now }: DoctorContext): Findings {
  const length = await readEpochLength(await data());
  if (!length) throw new Skipped('no server has started yet');
  const { days, before, changedAt } = length;
  if (days !== config.epoch_days) {
    yield warn(
      `GPD_EPOCH_DAYS is ${config.epoch_days} here, and the server started with ${days}`,
      'Set it back, unless every device is to get a new visitorId with the next start.',
    );
  } else if (changedAt !== null && now - changedAt < EPOCH_NEWS_MS) {
    yield warn(
      `GPD_EPOCH_DAYS changed from ${before} to ${days} ${span(now - changedAt)} ago: every visitorId changed`,
      'If that was not meant, set it back and restart. Old visitorIds still lead to their devices.',
    );
  }
}

async function* checkErasures({ data, config, now }: DoctorContext): Findings {
  const database = await data();
  const incomplete = await incompleteErasures(database, now);
  if (incomplete > 0) {
    const rewrite = config.rewrite_window === null ? '' : ', or wait for the next GPD_REWRITE_WINDOW';
    const when = database.kind === 'sqlite' ? ` in a quiet hour (it may rewrite the file)${rewrite}` : '';
    yield fail(
      `${incomplete} erasures are incomplete`,
      `Run gpd erase resume${when}; docs/operate/erasure-incomplete.md says how to find what holds them up.`,
    );
  }
  const age = now - ((await unscrubbedSince(database)) ?? now);
  if (age >= DAY) {
    yield warn(
      `the files of PostgreSQL hold bytes of what was erased ${span(age)} ago`,
      'Run gpd erase scrub in a quiet hour, and daily or weekly by a timer: each table is locked while it is rewritten.',
    );
  }
}

async function* checkContests({ data, now }: DoctorContext): Findings {
  const overdue = await overdueContests(await data(), now);
  const remedy = 'Run gpd contests list, and have a reviewer resolve them.';
  if (overdue > 0) yield fail(`${overdue} contests are past their due date`, remedy);
}

export const DATABASE_CHECKS: readonly Check[] = [
  { id: 'database.reachable', title: 'the database answers', run: checkReachable },
  { id: 'database.schema', title: 'the schema is whole and up to date', run: checkSchema },
  { id: 'database.integrity', title: 'SQLite finds no fault in the file', run: checkIntegrity },
  { id: 'database.durability', title: 'every answered write is on the disk', run: checkDurability },
  { id: 'database.exposure', title: 'nobody else reads what goes to PostgreSQL', run: checkExposure },
  { id: 'database.pooler', title: 'the pooler keeps transactions together', run: checkPooler },
  { id: 'database.removals', title: 'every row belongs to a tenant', run: checkRemovals },
  { id: 'jobs.failing', title: 'no job is failing', run: checkFailing },
  { id: 'jobs.sweep', title: 'the jobs of every minute are done', run: checkSweep },
  { id: 'jobs.retention', title: 'no decision is past the retention of its tenant', run: checkRetention },
  { id: 'identity.epochs', title: 'GPD_EPOCH_DAYS is what it was', run: checkEpochs },
  { id: 'rights.erasures', title: 'no erasure waits', run: checkErasures },
  { id: 'rights.contests', title: 'no contest is overdue', run: checkContests },
];
