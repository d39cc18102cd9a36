import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readServiceManager } from '../../../../src/config.ts';
import { type Database, openDatabase } from '../../../../src/db/engine.ts';
import { databaseAnswers } from '../../../../src/db/meta-store.ts';
import { migrate } from '../../../../src/db/migrate.ts';
import { startWatchdog } from '../../../../src/ops/systemd/supervisor-service.ts';
import { tempDir } from '../../../support/command.ts';
import { lockDatabase } from '../../../support/database.ts';
import { missingPostgres, sharedPostgres } from '../../../support/postgres.ts';
import { describeWithTool } from '../../../support/tools.ts';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function watch(answers: () => Promise<boolean>, watchdogMs = 60) {
  const counts = { signs: 0, misses: 0 };
  const count = (name: keyof typeof counts) => () => {
    counts[name] += 1;
  };
  const deps = { watchdogMs, answers, onAlive: count('signs'), onMiss: count('misses') };
  const watchdog = startWatchdog(deps);
  return Object.assign(counts, { stop: () => watchdog.stop() });
}

describe('the watchdog', () => {
  afterEach(() => vi.useRealTimers());

  it('gives three signs a period while all is well', async () => {
    vi.useFakeTimers();
    const watched = watch(() => Promise.resolve(true), 150);
    await vi.advanceTimersByTimeAsync(450);
    watched.stop();
    expect(watched.signs).toBe(9);
    expect(watched.misses).toBe(0);
  });

  it('gives none while the event loop is held, and does not make up for them', async () => {
    const watched = watch(() => Promise.resolve(true));
    await pause(100);
    const before = watched.signs;
    const end = performance.now() + 600;
    while (performance.now() < end);
    expect(watched.signs).toBe(before);
    await pause(15);
    watched.stop();
    // At most the overdue sign, and one for each period that this pause took: 15 ms, or more on a busy machine.
    const periods = Math.ceil((performance.now() - end) / 20);
    expect(watched.signs).toBeLessThanOrEqual(before + 1 + periods);
  });

  it.each([
    ['hangs', () => new Promise<boolean>(() => {})],
    ['says no', () => Promise.resolve(false)],
    ['throws', () => Promise.reject(new Error('gone'))],
  ])('gives none while the probe %s, and tells it once', async (_what, probe) => {
    vi.useFakeTimers();
    const watched = watch(probe);
    await vi.advanceTimersByTimeAsync(300);
    watched.stop();
    expect(watched).toMatchObject({ signs: 0, misses: 1 });
  });

  it('goes on when the probe does, and tells the next silence again', async () => {
    vi.useFakeTimers();
    let well = false;
    const watched = watch(() => Promise.resolve(well));
    for (const next of [true, false, false]) {
      await vi.advanceTimersByTimeAsync(100);
      well = next;
    }
    watched.stop();
    expect(watched.signs).toBeGreaterThan(0);
    expect(watched.misses).toBe(2);
  });
});

describe('the probe of an SQLite database', () => {
  let dataDir: string;
  let database: Database;
  beforeEach(async () => {
    dataDir = tempDir('probe');
    database = await openDatabase({ location: join(dataDir, 'gpd.db'), create: true });
    await migrate(database);
  });
  afterEach(() => database.close());

  it('is answered, also by the lock of another process, which no restart would end; and writes nothing', async () => {
    const version = async () => (await database.read.raw('PRAGMA data_version')) as unknown;
    const before = await version();
    expect(await databaseAnswers(database)).toBe(true);
    expect(await version()).toEqual(before);
    const unlock = await lockDatabase(dataDir);
    expect(await databaseAnswers(database)).toBe(true);
    await unlock();
  });

  it('is not answered by a writer that one transaction never gives back', async () => {
    let release = (): void => {};
    const blockingWork = database.transaction(
      () =>
        new Promise<void>((resolve) => {
          release = resolve;
        }),
    );
    expect(await databaseAnswers(database)).toBe(false);
    release();
    await blockingWork;
    expect(await databaseAnswers(database)).toBe(true);
  });

  it('is not answered by a file that is closed', async () => {
    await database.close();
    expect(await databaseAnswers(database)).toBe(false);
  });
});

describeWithTool('the probe of a PostgreSQL database', await missingPostgres(), () => {
  it('is not answered by a server that hangs, is by one that refuses, and again when it goes on', async () => {
    const { hostname, port, pathname, username, password } = new URL(await sharedPostgres().freshUrl());
    const pipes = new Set<Socket>();
    const proxy = createServer((inner) => {
      const outer = connect(Number(port), hostname);
      for (const socket of [inner, outer]) {
        pipes.add(socket);
        socket.on('error', () => {});
      }
      inner.pipe(outer).pipe(inner);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { port: near } = proxy.address() as AddressInfo;
    const location = `postgres://${username}:${password}@127.0.0.1:${near}${pathname}`;
    const database = await openDatabase({ location });
    await migrate(database);
    expect(await databaseAnswers(database)).toBe(true);
    for (const socket of pipes) socket.pause();
    expect(await databaseAnswers(database)).toBe(false);
    for (const socket of pipes) socket.resume();
    expect(await databaseAnswers(database)).toBe(true);
    proxy.close();
    for (const socket of pipes) socket.destroy();
    await pause(100);
    expect(await databaseAnswers(database)).toBe(true);
    await database.close();
  });
});

describe('what a service manager hands over', () => {
  const environment = {
    NOTIFY_SOCKET: '/run/systemd/notify',
    WATCHDOG_USEC: '30000000',
    WATCHDOG_PID: '7',
    LISTEN_PID: '7',
    LISTEN_FDS: '2',
    LISTEN_FDNAMES: 'http:metrics',
  };

  it('is read with its names, and nothing of another process’s', () => {
    expect(readServiceManager(environment, 7)).toEqual({
      notifySocket: '/run/systemd/notify',
      watchdogMs: 30_000,
      sockets: [
        { fd: 3, name: 'http' },
        { fd: 4, name: 'metrics' },
      ],
    });
    const nothing = { notifySocket: null, watchdogMs: null, sockets: [] };
    expect(readServiceManager({}, 7)).toEqual(nothing);
    expect(readServiceManager({ ...environment, NOTIFY_SOCKET: '' }, 8)).toEqual(nothing);
    expect(readServiceManager({ LISTEN_FDS: '1' }, 8)).toEqual(nothing);
    expect(readServiceManager({ LISTEN_PID: '8', LISTEN_FDS: '-1', WATCHDOG_USEC: 'x' }, 8)).toEqual(nothing);
  });
});
