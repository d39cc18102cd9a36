import { appendFileSync, cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { sealLine } from '../../../src/db/line-log.ts';
import {
  erasureLog,
  erasureLogKey,
  mergeLines,
  textLines,
} from '../../../src/rights/erase/erasure-log-service.ts';
import { openStore } from '../../../src/tenants/installation-files.ts';
import { type Own, ownOf } from '../../cli/support/own.ts';
import { apiKey, rightsOf, startRights, type Visit } from '../../rights/support/rights.ts';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { startGpd } from '../../support/server.ts';
import { started } from '../../support/started.ts';

/** Erasures after a backup are repeated on the database that is restored from it. */

const rights = started(() => startRights());
let secret: string;
let early: Visit;
let lateVisit: Visit;
let stays: Visit;
let backup: string;
let dataDir: string;
let logKey: Buffer;

const subject = (visit: Visit, sub: string): Promise<string> =>
  rights.as({ gpd_role: 'subject', sub, gpd_visitor: visit.visitorId });

beforeAll(async () => {
  ({ dataDir } = rights.gpd);
  secret = await apiKey(rights, 'secret');
  [early, lateVisit, stays] = [await rights.visit(), await rights.visit(), await rights.visit()];
  expect((await rights.call('/privacy/erase', {}, await subject(early, 'early'))).status).toBe(200);
  backup = join(tempDir('backups'), 'b');
  expect(await rights.gpd.json(['backup', backup])).toMatchObject({ erasures: 1 });
  expect((await rights.call('/privacy/erase', {}, await subject(lateVisit, 'late'))).status).toBe(200);
  await rights.gpd.stop();
  const store = await openStore(loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} }));
  logKey = erasureLogKey(store.serverSecret);
  await store.database.close();
});

const log = (directory: string): string => readFileSync(join(directory, 'erasures.log'), 'utf8');

/** @returns the files that contain an id in plain text */
function filesWith(directory: string, id: string): string[] {
  const files = readdirSync(directory).filter((name) => statSync(join(directory, name)).isFile());
  return files.filter((name) => readFileSync(join(directory, name)).includes(id));
}

/** Copies the data directory as it was after the erasures. */
function copy(): Own & { restore(file: string): Promise<Record<string, unknown>> } {
  const directory = join(tempDir('copy'), 'gpd-data');
  cpSync(dataDir, directory, { recursive: true });
  const mine = ownOf(directory);
  return { ...mine, restore: (file) => mine.json(`restore ${file} --yes`) };
}

async function expectForgotten(directory: string, visits: readonly Visit[]): Promise<void> {
  const settings = { ...rights.idp.settings, GPD_RATE_PRIVACY: 'off' };
  const gpd = await startGpd({ dataDir: directory, settings });
  const restored = rightsOf(gpd, rights.idp, [rights.acme, rights.other]);
  for (const { requestId } of visits)
    expectError(await restored.decision(requestId, secret), 'no-such-decision');
  expect((await restored.decision(stays.requestId, secret)).status).toBe(200);
  expect(gpd.logs()).toContain('erasures-applied-again');
  expect(await gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
  await gpd.stop();
  for (const { requestId, visitorId } of visits) {
    for (const id of [requestId, String(visitorId)])
      expect({ id, in: filesWith(directory, id) }).toEqual({ id, in: [] });
  }
}

describe('an erasure after the backup', () => {
  it('is repeated before the server listens, and leaves no byte', async () => {
    const mine = copy();
    expect(filesWith(mine.dataDir, lateVisit.requestId)).toEqual([]);
    const logText = log(mine.dataDir);
    expect(logText.trim().split('\n')).toHaveLength(2);
    expect(await mine.restore(backup)).toMatchObject({ erasuresToRepeat: 1 });
    // Control: the restored file contains the id that has to be erased.
    expect(filesWith(mine.dataDir, lateVisit.requestId)).toEqual(['gpd.db']);
    expect(log(mine.dataDir)).toBe(logText);
    expect((await mine.gpd('doctor')).stdout).toMatch(
      /data\.erasure-log +1 erasures are newer than this copy/,
    );
    await expectForgotten(mine.dataDir, [early, lateVisit]);
    expect((await mine.gpd('doctor --all')).stdout).toMatch(/pass +data\.erasure-log/);
  });

  it('is repeated after a second restore, too, and after a restore of a backup of the first', async () => {
    const mine = copy();
    await mine.restore(backup);
    const second = join(tempDir('backups'), 'b');
    await mine.json(`backup ${second}`);
    expect(await mine.restore(backup)).toMatchObject({ erasuresToRepeat: 1 });
    expect(await mine.restore(second)).toMatchObject({ erasuresToRepeat: 1 });
    await expectForgotten(mine.dataDir, [lateVisit]);
  });

  it('on a new machine: a log that was put there counts, and the backup brings its own', async () => {
    const bare = ownOf(join(tempDir('bare'), 'gpd-data'));
    const first = await bare.json(`restore ${backup} --key-file ${join(dataDir, 'master.key')}`);
    expect(first).toMatchObject({ erasuresToRepeat: 0 });
    expect(log(bare.dataDir)).toBe(`${log(dataDir).split('\n')[0]}\n`);
    writeFileSync(join(bare.dataDir, 'erasures.log'), log(dataDir));
    expect(await bare.json(`restore ${backup} --yes`)).toMatchObject({ erasuresToRepeat: 1 });
    await expectForgotten(bare.dataDir, [lateVisit]);
  });

  it('counts an offboarding that is still to do, and nothing of a tenant that is gone or came anew', async () => {
    const mine = copy();
    const line = JSON.parse(log(dataDir).split('\n')[0] ?? '') as object;
    const outside = erasureLog({ dataDir: mine.dataDir, logKey });
    let last = textLines(log(dataDir)).length;
    const add = (parts: object): void => {
      last += 1;
      const body = JSON.stringify({ ...line, n: undefined, mac: undefined, ...parts });
      appendFileSync(outside.path, `${sealLine(outside, last, body)}\n`);
    };
    const count = async (): Promise<unknown> =>
      (await mine.json(`restore ${backup} --dry-run`))['erasuresToRepeat'];
    add({ receiptId: 'r-gone', tenant: 'gone' });
    add({ receiptId: 'off-gone', tenant: 'gone', refs: [{ kind: 'tenant', ref: 'gone' }] });
    const refs = [{ kind: 'tenant', ref: KID }];
    add({ receiptId: 'off-before', tenant: KID, at: '2020-01-01T00:00:00.000Z', refs });
    expect(await count()).toBe(1);
    add({ receiptId: 'off-after', tenant: KID, at: '2999-01-01T00:00:00.000Z', refs });
    expect(await count()).toBe(2);
  });

  it.each([
    ['the last line', (lines: string[]) => lines.slice(0, 1), /1 lines are missing at the end/],
    ['the first line', (lines: string[]) => lines.slice(1), /line 1 is missing/],
    ['every line', () => [], /2 lines are missing at the end/],
  ])('of which %s was taken away is told by restore, doctor and serve', async (_which, take, problem) => {
    const mine = copy();
    const lines = take(textLines(log(dataDir)));
    writeFileSync(join(mine.dataDir, 'erasures.log'), lines.map((line) => `${line}\n`).join(''));
    const ran = await mine.gpd(`restore ${backup} --yes`);
    expect(ran).toMatchObject({ code: 78, stdout: '' });
    expect(ran.stderr).toMatch(problem);
    const { stdout } = await mine.gpd('doctor --all');
    expect(stdout.split('\n').find((line) => line.includes('data.erasure-log'))).toMatch(problem);
    const gpd = await startGpd({ dataDir: mine.dataDir });
    expect(gpd.logs()).toMatch(/"event":"erasure-log-broken"/);
    await gpd.stop();
  });

  it('a line that a crash cut off was never answered; one that is damaged or was dropped stops the restore', async () => {
    const mine = copy();
    const path = join(mine.dataDir, 'erasures.log');
    appendFileSync(path, '{"v":1,"receiptId":"r-');
    expect(await mine.restore(backup)).toMatchObject({ erasuresToRepeat: 1 });
    const outside = erasureLog({ dataDir: mine.dataDir, logKey });
    const [, second = ''] = textLines(log(dataDir));
    const dropped = JSON.stringify({ dropped: 1, until: '2999-01-01T00:00:00.000Z' });
    for (const [text, problem] of [
      [`garbage\n${log(dataDir)}`, 'erasures.log: line 1 is damaged'],
      // An erasure since such a backup could not be repeated.
      [`${sealLine(outside, 1, dropped)}\n${second}\n`, 'has dropped its lines until 2999-01-01'],
    ] as const) {
      writeFileSync(path, text);
      const before = await mine.dump();
      const ran = await mine.gpd(`restore ${backup} --yes`);
      expect(ran).toMatchObject({ code: 78, stdout: '' });
      expect(ran.stderr).toContain(problem);
      expect(await mine.dump()).toEqual(before);
    }
  });
});

it('the lines of a backup and a directory are merged, each once, ours first', () => {
  const outside = erasureLog({ dataDir: '/nowhere', logKey: Buffer.alloc(32) });
  const seal = (ids: string, from = 1): string[] =>
    ids.split('').map((id, i) => sealLine(outside, from + i, JSON.stringify({ id })));
  expect(mergeLines(outside, [], seal('a'))).toEqual(seal('a'));
  expect(mergeLines(outside, seal('ab'), seal('a'))).toEqual(seal('ab'));
  expect(mergeLines(outside, seal('ab'), seal('bc'))).toEqual(seal('abc'));
  expect(mergeLines(outside, seal('ab', 5), seal('ac'))).toEqual([...seal('ab', 5), ...seal('c', 7)]);
  const dropped = sealLine(outside, 4, JSON.stringify({ dropped: 4, until: 'x' }));
  expect(mergeLines(outside, seal('a'), [dropped, ...seal('b', 5)])).toEqual(seal('ab'));
  // A merge must not give a forged line a valid MAC.
  const forged = JSON.stringify({ v: 1, event: 'apikey.revoked', id: 'k', n: 2, mac: 'A'.repeat(43) });
  expect(mergeLines(outside, seal('a'), [...seal('b'), forged])).toEqual(seal('ab'));
});
