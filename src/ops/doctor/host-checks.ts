import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteFile } from '../../config.ts';
import { readForgottenTo, readNewestTime } from '../../db/clock-rule-store.ts';
import { readMeta } from '../../db/meta-store.ts';
import { archiveSignerContext, isPredictable, SERVER_SECRET } from '../../keys/master-key.ts';
import { DAY, isoTime, SECOND } from '../../lib/clock.ts';
import { tryOr } from '../../lib/errors.ts';
import { reasonOf } from '../../lib/jobs.ts';
import { readArchiveSigner } from '../../rights/dsar/signer-store.ts';
import { createLineCollector } from '../../rights/erase/ended-store.ts';
import { erasureLogKey, scanErasureLog } from '../../rights/erase/erasure-log-service.ts';
import { findUnitCredential, pendingKeyPath } from '../../tenants/master-key-files.ts';
import { opensSecret, readEscrow } from '../escrow-files.ts';
import { listWrapped } from '../rewrap-store.ts';
import type { Check } from './check.ts';
import type { DoctorContext, FileFact } from './context-service.ts';
import { about, type Findings, fail, mega, pass, Skipped, span, warn } from './finding.ts';
import { lastBackupAt } from './inspect-store.ts';

/** Checks of the machine and its clock, the data directory, and the master key. */

const isOpenToOthers = ({ mode }: FileFact): boolean => (mode & 0o077) !== 0;
const octal = ({ mode }: FileFact): string => mode.toString(8);

const GIGA = 1e9;

function* checkSpace({ disk, file, config }: DoctorContext): Findings {
  const { freeBytes, totalBytes, freeInodes } = disk();
  const free = `${mega(freeBytes)} of ${mega(totalBytes)} free`;
  const isShort = freeBytes < GIGA || freeBytes < 0.05 * totalBytes;
  const createFinding = freeBytes < 0.1 * GIGA ? fail : warn;
  if (isShort)
    yield createFinding(free, 'Make room: without it every write is refused with 503, and so is an erasure.');
  if (freeInodes !== null && freeInodes < 0.01) yield warn('no inodes are left', 'Delete small files.');
  const needed = 2 * (file(sqliteFile(config))?.size ?? 0);
  if (!isShort && freeBytes < needed)
    yield warn(`${free}, and a backup needs ${mega(needed)} for a while`, 'Make room for a backup.');
  yield pass(free);
}

/** Release schedule of Node.js (https://github.com/nodejs/release#release-schedule), without odd versions. */
const END_OF_LIFE: Readonly<Record<string, string>> = {
  18: '2025-04-30',
  20: '2026-04-30',
  22: '2027-04-30',
  24: '2028-04-30',
};

function* checkNode({ now, nodeVersion }: DoctorContext): Findings {
  const [major = ''] = nodeVersion.split('.');
  const end = END_OF_LIFE[major];
  const found = `Node ${nodeVersion}`;
  if (end !== undefined && isoTime(now).slice(0, 10) > end)
    yield warn(`${found} gets no security fixes since ${end}`, 'Install Node 24 or newer.');
  yield pass(end === undefined ? found : `${found}, supported until ${end}`);
}

const NTP = 'Set the clock by NTP (timedatectl set-ntp true), on every node.';

/**
 * Compares this clock with the identity provider's and the database's; docs/adr/0026 says how a server treats
 * a wrong clock.
 */
async function* checkClock({ now, config, provider, data }: DoctorContext): Findings {
  const skew = Math.abs((await provider())?.skewMs ?? 0);
  const createFinding = skew > config.max_clock_skew * SECOND ? fail : warn;
  if (skew > 30 * SECOND) yield createFinding(`${span(skew)} apart from the identity provider`, NTP);
  const database = await data();
  const newest = await readNewestTime(database);
  const forgotten = await readForgottenTo(database);
  const until = Math.max((newest ?? 0) - config.max_clock_skew * SECOND, forgotten ?? 0);
  if (until > now)
    yield fail(`a server ran while its clock was ahead: bundles are refused until ${isoTime(until)}`, NTP);
  if (newest !== null && now - newest > DAY) {
    yield warn(
      `the clock is ${span(now - newest)} ahead of the newest time of a server`,
      'Check the clock (timedatectl). If it is right, run gpd retention run --yes, or wait: retention, anchoring and key destruction catch up by a day an hour.',
    );
  }
}

const LEFTOVER = /^staging-|\.tmp$|\.before-restore|\.partial$/;

function* checkDirectory({ uid, config, file, disk }: DoctorContext): Findings {
  const directory = file(config.data_dir);
  if (!directory) {
    yield fail(
      `${config.data_dir} does not exist`,
      'Run gpd init, or set GPD_DATA_DIR to the right directory.',
    );
    return;
  }
  if (uid !== null && uid !== directory.uid) {
    const createFinding = uid === 0 ? warn : fail;
    yield createFinding(
      `gpd runs as ${uid === 0 ? 'root' : `user ${uid}`}, and it belongs to user ${directory.uid}`,
      directory.uid === 0
        ? 'Run gpd as root.'
        : 'Run gpd as that user, for instance runuser -u gpd -- gpd ….',
    );
  }
  const isWritable = (directory.mode & 0o022) !== 0;
  if (isOpenToOthers(directory)) {
    const createFinding = isWritable ? fail : warn;
    const detail = `other users can ${isWritable ? 'write to' : 'list'} it (${octal(directory)})`;
    yield createFinding(detail, `Run chmod 0700 ${directory.path}.`);
  }
  const kind = config.database_url === null ? disk().kind : 'local';
  if (kind === 'tmpfs')
    yield warn('it is in memory', 'Move it to a disk: a restart of the machine empties it.');
  if (kind === 'network')
    yield fail(
      'it is on a network file system',
      'Move it to a local disk: SQLite cannot lock over the network.',
    );
  const leftovers = tryOr(() => readdirSync(config.data_dir), []).filter((name) => LEFTOVER.test(name));
  const remedy = 'When no backup or restore is running, delete them: erasures do not reach them.';
  yield* about(leftovers, warn('an interrupted command left files', remedy));
}

/** Bytes. Rewriting a larger file refuses writes for more than about 20 s. */
const LARGE_FILE = 1.5 * 1024 ** 3;

function* checkDatabaseFile({ config, file }: DoctorContext): Findings {
  if (config.database_url !== null) throw new Skipped('the data are in PostgreSQL');
  const [database, directory] = [file(sqliteFile(config)), file(config.data_dir)];
  if (!database) throw new Skipped('there is no file');
  if (isOpenToOthers(database))
    yield fail(`other users can read the database (${octal(database)})`, `Run chmod 0600 ${database.path}*.`);
  if (directory && database.uid !== directory.uid) {
    yield fail(
      `the database belongs to user ${database.uid}, its directory to ${directory.uid}`,
      `Run chown --reference=${directory.path} ${database.path}*.`,
    );
  }
  const wal = file(join(config.data_dir, 'gpd.db-wal'))?.size ?? 0;
  const createFinding = wal > 1e9 ? fail : warn;
  if (wal > 128e6) {
    yield createFinding(
      `the write-ahead log is ${mega(wal)}`,
      'Stop the program that keeps reading the database: until then no erasure completes either.',
    );
  }
  if (database.size > LARGE_FILE && config.rewrite_window === null) {
    yield warn(
      `the file is ${mega(database.size)}: an erasure that has to rewrite it waits for gpd erase resume`,
      'Set GPD_REWRITE_WINDOW to a time when writes may be refused for a while, for instance 02:00-04:00 (UTC).',
    );
  }
  yield pass(`mode ${octal(database)}, ${mega(database.size)}`);
}

async function* checkErasureLog({ config, now, data, keys }: DoctorContext): Findings {
  const database = await data();
  const lostLines = await createLineCollector(database, now);
  const unlocked = await keys();
  // Without the key the lines cannot be verified.
  if (!unlocked) throw new Skipped('the master key does not open the database');
  const logAccess = { database, dataDir: config.data_dir, logKey: erasureLogKey(unlocked.secret) };
  const unread = (error: unknown) => ({ problem: `it cannot be read (${reasonOf(error)})` });
  const { problem } = await scanErasureLog(logAccess, lostLines?.collect).catch(unread);
  if (problem !== null) {
    yield fail(
      problem,
      'Restore erasures.log from a copy, owned by the user that gpd runs as: without it a restore cannot repeat those erasures.',
    );
  }
  const undone = lostLines?.countErasures() ?? 0;
  if (undone > 0) {
    yield warn(
      `${undone} erasures are newer than this copy of the database`,
      'Start gpd serve: it repeats them before it listens.',
    );
  }
}

async function* checkBackup({ now, config, data }: DoctorContext): Findings {
  const at = await lastBackupAt(await data());
  if (at === null && config.database_url !== null)
    throw new Skipped('gpd made none; it does not see PostgreSQL’s own');
  const found = at === null ? 'no backup was ever made' : `the last one is ${span(now - at)} old`;
  if (at === null || now - at > 7 * DAY)
    yield warn(
      found,
      'Enable gpd-backup.timer, or run gpd backup daily, and keep the files on another machine.',
    );
  yield pass(found);
}

/** The file must belong to gpd's user or root: its owner can read it, open it to others or replace it. */
function* checkKeyFile({ uid, file: readFile, config, masterKey }: DoctorContext): Findings {
  const { file } = masterKey();
  if (!file) return;
  const repair = `chmod 0600 ${file.path}, then gpd keys rewrap.`;
  if (isOpenToOthers(file))
    yield fail(`other users can read the master key (${octal(file)})`, `Run ${repair}`);
  const isOurs = uid === null || [0, uid, readFile(config.data_dir)?.uid].includes(file.uid);
  if (!isOurs)
    yield fail(
      `the master key belongs to user ${file.uid}`,
      `Run chown to the user that gpd runs as, ${repair}`,
    );
}

/** LoadCredential= of the systemd unit may name the file of the master key. */
async function* checkKeyPresent(context: DoctorContext): Findings {
  const { path, file, denied, key } = context.masterKey();
  const credentialPath = findUnitCredential();
  const credential = context.file(credentialPath);
  if (credentialPath !== null && !credential)
    yield fail(`LoadCredential= names ${credentialPath}, which does not exist`, 'Put the master key there.');
  if (credential && isOpenToOthers(credential)) {
    const remedy = `Run chown root ${credentialPath} && chmod 0600 ${credentialPath}.`;
    yield fail(`other users can read ${credentialPath} (${octal(credential)})`, remedy);
  }
  yield* checkKeyFile(context);
  if (!key && credential && context.config.master_key_file === null && !file) {
    yield pass(`held by the unit (${credentialPath}): run gpd doctor as root to check it`);
  } else if (!key) {
    const fault = denied ? 'cannot be read: permission denied' : file ? 'holds no master key' : 'is missing';
    const remedy = denied
      ? 'Run gpd as the user that owns it.'
      : 'Put back the file that this data was created with; without it nothing can be decrypted.';
    yield fail(`${path} ${fault}`, remedy);
  }
  if (key && isPredictable(key)) {
    const isUsed = !('failure' in (await context.seen()));
    yield fail(
      'the master key is not random',
      isUsed
        ? 'Run gpd keys rewrap: gpd serve refuses such a key.'
        : `Write 32 random bytes to ${path}: openssl rand -base64 32.`,
    );
  }
  yield pass(credentialPath === path ? `held by the unit (${path})` : path);
}

async function* checkKeyFits({ masterKey, data }: DoctorContext): Findings {
  const { path, master } = masterKey();
  if (existsSync(pendingKeyPath(path))) {
    yield warn(
      'a change of the master key was interrupted',
      'Run any gpd command that opens the data: it finishes the change.',
    );
  }
  const database = await data();
  const wrapped = await readMeta(database, SERVER_SECRET);
  if (!master || wrapped === null) throw new Skipped('there is nothing to test it on');
  if (!opensSecret(master, wrapped)) {
    yield fail('it is not the key of this database', 'Use the key that this database was created with.');
    return;
  }
  const signer = await readArchiveSigner(database);
  const all = [
    ...(await listWrapped(database.read)),
    ...(signer
      ? [{ name: 'the key that signs exports', wrapped: signer.wrappedKey, context: archiveSignerContext }]
      : []),
  ];
  const unopened = all.filter(({ wrapped: secret, context }) => !opensSecret(master, secret, context));
  const remedy = 'These rows were changed or come from another database: restore a backup.';
  yield* about(
    unopened.map(({ name }) => name),
    fail('it does not open', remedy),
  );
}

async function* checkEscrow({ now, keys, data }: DoctorContext): Findings {
  const unlocked = await keys();
  if (!unlocked) throw new Skipped('the master key does not open the database');
  const escrow = await readEscrow(await data(), unlocked.master);
  const at = escrow && `confirmed ${span(now - escrow.confirmedAt)} ago`;
  if (!escrow?.current) {
    yield warn(
      escrow
        ? `the recovery key that was ${at} is of an earlier master key`
        : 'no recovery key was ever confirmed',
      'Run gpd master-key escrow, print the key, then type it back with gpd master-key confirm: if this disk fails, the key is lost.',
    );
  }
  yield pass(`a recovery key was ${at}`);
}

export const HOST_CHECKS: readonly Check[] = [
  { id: 'host.space', title: 'there is room for writes and a backup', run: checkSpace },
  { id: 'host.node', title: 'Node gets security fixes', run: checkNode },
  { id: 'host.clock', title: 'the clock is right', run: checkClock },
  { id: 'data.directory', title: 'gpd alone uses the data directory', run: checkDirectory },
  { id: 'data.database-file', title: 'gpd alone reads the database', run: checkDatabaseFile },
  { id: 'data.erasure-log', title: 'every erasure is logged and applied', run: checkErasureLog },
  { id: 'data.backup', title: 'the last backup is younger than a week', run: checkBackup },
  { id: 'master-key.present', title: 'gpd alone can read the master key', run: checkKeyPresent },
  { id: 'master-key.fits', title: 'the master key opens every stored secret', run: checkKeyFits },
  { id: 'master-key.escrow', title: 'a recovery key was confirmed', run: checkEscrow },
];
