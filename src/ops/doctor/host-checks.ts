import { DAY, isoTime, SECOND } from '../../lib/clock.ts';
import { type Checks, fail, mega, pass, read, skipped, some, span, warn } from './check.ts';
import type { FileFact } from './gather-files.ts';

/** The machine, the data directory, the master key, and the clock with what the server makes of it (ADR 0006). */

const OLDEST_NODE = [20, 19] as const;
const GIGA = 1e9;

const others = (file: FileFact): number => file.mode & 0o077;
const octal = (file: FileFact): string => (file.mode & 0o777).toString(8);

/** Above it a rewrite refuses writes for about 20 s. */
const LARGE_FILE = 1.5 * 1024 ** 3;

/** gpd was not written before this. */
const FIRST_DAY = Date.parse('2026-01-01T00:00:00Z');

const NTP = 'Set the clock by NTP (timedatectl set-ntp true).';

export const HOST_CHECKS: Checks = {
  'host.node'({ host }) {
    const [major = 0, minor = 0] = host.node.replace(/^v/, '').split('.').map(Number);
    const old = major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
    return old ? fail(`Node ${host.node}`) : pass(`Node ${host.node}`);
  },
  'host.user'({ host, data }) {
    if (host.uid === null || !data.directory) return skipped('no user to compare with');
    if (host.uid === data.directory.uid) return pass('this user owns the data directory');
    const who = host.uid === 0 ? 'root' : `user ${host.uid}`;
    const detail = `gpd runs as ${who}, and user ${data.directory.uid} owns the data directory`;
    return host.uid === 0 ? warn(detail) : fail(detail);
  },
  'host.space'({ host, data }) {
    const free = `${mega(host.freeBytes)} of ${mega(host.totalBytes)} free`;
    const needed = data.database?.size ?? 0;
    const remedy = 'Make room: without it every write is refused with 503, and so is an erasure.';
    if (host.freeBytes < 0.1 * GIGA) return fail(free, remedy);
    if (host.freeBytes < GIGA || host.freeBytes < 0.05 * host.totalBytes) return warn(free, remedy);
    if (host.freeBytes < 2 * needed)
      return warn(`${free}, and a backup needs ${mega(2 * needed)} for a while`, 'Make room for a backup.');
    return pass(free);
  },
  'host.inodes'({ host }) {
    if (host.freeInodes === null) return skipped('this file system has no inode count');
    const share = `${Math.round(host.freeInodes * 100)} % of the inodes are free`;
    return host.freeInodes < 0.01 ? warn(share) : pass(share);
  },
  'host.credential'({ host }) {
    if (!host.unitCredential) return skipped('the unit loads no credential');
    const { path, file } = host.unitCredential;
    if (!file)
      return fail(`LoadCredential= names ${path}, which does not exist`, 'Put the master key there.');
    return others(file) === 0
      ? pass(path)
      : fail(`other users can read ${path} (${octal(file)})`, `chown root ${path} && chmod 0600 ${path}`);
  },
  'data.file-system'({ host, config }) {
    if (config.database_url !== null) return skipped('the data are in PostgreSQL');
    if (host.fileSystem === 'tmpfs')
      return warn(
        'the data directory is in memory',
        'Move it to a disk: a restart of the machine empties it.',
      );
    if (host.fileSystem === 'network') {
      return fail(
        'the data directory is on a network file system',
        'Move it to a local disk: SQLite cannot lock over the network.',
      );
    }
    return pass('a local disk');
  },
  'data.directory'({ data, config }) {
    const { directory } = data;
    if (!directory)
      return fail(
        `${config.data_dir} does not exist`,
        'Run gpd init, or set GPD_DATA_DIR to the right directory.',
      );
    const remedy = `chmod 0700 ${directory.path}`;
    if ((directory.mode & 0o022) !== 0)
      return fail(`other users can write to it (${octal(directory)})`, remedy);
    if (others(directory) !== 0) return warn(`other users can list it (${octal(directory)})`, remedy);
    return pass(`${directory.path}, mode ${octal(directory)}`);
  },
  'data.database-file'({ data, config }) {
    if (config.database_url !== null) return skipped('the data are in PostgreSQL');
    const { database, directory } = data;
    if (!database) return fail('there is no database', 'Run gpd init, or gpd restore.');
    if (others(database) !== 0)
      return fail(`other users can read the database (${octal(database)})`, `chmod 0600 ${database.path}*`);
    if (directory && database.uid !== directory.uid) {
      return fail(
        `the database belongs to user ${database.uid}, its directory to ${directory.uid}`,
        `chown --reference=${directory.path} ${database.path}*`,
      );
    }
    return pass(`mode ${octal(database)}, ${mega(database.size)}`);
  },
  'data.rewrite'({ data, config }) {
    const bytes = data.database?.size ?? 0;
    if (bytes === 0) return skipped('there is no SQLite file');
    if (bytes <= LARGE_FILE || config.rewrite_window !== null) return pass(`the file is ${mega(bytes)}`);
    return warn(`the file is ${mega(bytes)}: an erasure that has to rewrite it waits for gpd erase resume`);
  },
  'data.leftovers'({ data }) {
    if (data.leftovers.length === 0) return pass('no interrupted command left files');
    return warn(`left by an interrupted command: ${some(data.leftovers)}`);
  },
  'data.restore': read((database) => {
    return database.undoneErasures > 0
      ? warn(`${database.undoneErasures} erasures are newer than this copy of the database`)
      : pass('the database has applied every erasure');
  }),
  'data.erasure-log'({ data, database }) {
    const log = data.erasureLog;
    const problem = log?.problem ?? ('failure' in database ? null : database.brokenErasureLog);
    if (!log && problem === null) return skipped('nothing was erased yet');
    if (!log || problem !== null) return fail(problem ?? 'it is missing');
    return pass(`${log.lines.toLocaleString('en')} erasures, each readable`);
  },
  'data.backup'({ now, database, config }) {
    if ('failure' in database) return skipped('the database cannot be read');
    if (database.lastBackupAt === null)
      return config.database_url === null
        ? warn('no backup was ever made')
        : skipped('gpd made none; it does not see PostgreSQL’s own');
    const age = Math.max(0, now - database.lastBackupAt);
    return age > 7 * DAY
      ? warn(`the last backup is ${span(age)} old`)
      : pass(`the last one is ${span(age)} old`);
  },
  'master-key.present'({ masterKey, config, host: { unitCredential } }) {
    if (unitCredential?.file && config.master_key_file === null && !masterKey.file)
      return pass(`held by the unit (${unitCredential.path}): run gpd doctor as root to check it`);
    if (!masterKey.file?.readable) return fail(`${masterKey.path} is missing or not readable`);
    const isHeld = unitCredential?.path === masterKey.path;
    return masterKey.valid
      ? pass(isHeld ? `held by the unit (${masterKey.path})` : masterKey.path)
      : fail(`${masterKey.path} holds no master key`);
  },
  'master-key.mode'({ masterKey }) {
    const { file } = masterKey;
    if (!file) return skipped('there is no master key');
    return others(file) === 0
      ? pass(`mode ${octal(file)}`)
      : fail(
          `other users can read the master key (${octal(file)})`,
          `chmod 0600 ${file.path}, then gpd keys rewrap.`,
        );
  },
  /** The owner of a key file can read it, open it to others and put another in its place. */
  'master-key.owner'({ masterKey: { file }, host, data }) {
    if (!file) return skipped('there is no master key');
    const isOurs = host.uid === null || [0, host.uid, data.directory?.uid].includes(file.uid);
    const detail = `the master key belongs to user ${file.uid}`;
    const remedy = `chown it to the user that gpd runs as, chmod 0600 ${file.path}, then gpd keys rewrap.`;
    return isOurs ? pass(detail) : fail(detail, remedy);
  },
  'master-key.fits'({ masterKey }) {
    if (masterKey.opens === null) return skipped('there is nothing to test it on');
    return masterKey.opens ? pass('it opens this database') : fail('it is not the key of this database');
  },
  'master-key.secrets'({ masterKey }) {
    if (masterKey.opens !== true) return skipped('the master key does not open the database');
    if (masterKey.unopened.length === 0) return pass('every stored secret opens');
    return fail(`it does not open ${some(masterKey.unopened)}`);
  },
  'master-key.rewrap': ({ masterKey }) =>
    masterKey.rewrapPending
      ? warn('a change of the master key was interrupted')
      : pass('no change of it was interrupted'),
  'master-key.escrow'({ now, masterKey }) {
    if (masterKey.opens !== true) return skipped('the master key does not open the database');
    const { escrow } = masterKey;
    if (!escrow) return warn('no recovery key was ever confirmed');
    const age = span(Math.max(0, now - escrow.confirmedAt));
    return escrow.current
      ? pass(`a recovery key was confirmed ${age} ago`)
      : warn(`the recovery key that was confirmed ${age} ago is of an earlier master key`);
  },
  'host.clock'({ now }) {
    if (now < FIRST_DAY) return fail('the clock is set to a time before gpd existed');
    return pass('the clock is plausible');
  },
  'clock.ahead': read(({ newestTime }, { now }) => {
    if (newestTime === null) return skipped('no server has run its jobs yet');
    return now - newestTime > DAY
      ? warn(`the clock is ${span(now - newestTime)} ahead of the newest time of a server`)
      : pass('the clock is not a day ahead of the newest time of a server');
  }),
  'clock.behind': read(({ newestTime, forgottenTo }, { now, config }) => {
    const until = Math.max((newestTime ?? 0) - config.max_clock_skew * SECOND, forgottenTo ?? 0);
    return until > now
      ? fail(
          `a server ran while its clock was ahead: bundles are refused until ${isoTime(until)}`,
          `Check the clock of every node. ${NTP}`,
        )
      : pass('the clock is not behind the newest time of a server');
  }),
};
