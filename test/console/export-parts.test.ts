import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ConsentTenant } from '../../src/consent/tenant.ts';
import { JobGone, openExport, sealExport } from '../../src/console/export-parts-service.ts';
import { makeJobs } from '../../src/console/jobs-service.ts';
import { type Database, openDatabase } from '../../src/db/db.ts';
import { migrate } from '../../src/db/migrate.ts';
import { makeMasterKey } from '../../src/keys/master-key.ts';
import { sha256 } from '../../src/lib/hash.ts';
import { deleteJob, insertJob } from '../../src/rights/job-store.ts';
import { tenantSettingsSchema } from '../../src/tenants/settings.ts';
import { addTenant } from '../db/contract/database.ts';
import { fc } from '../support/property.ts';

/** What an export writes, through the database and back. */

const KEYS = { exports: Buffer.alloc(32, 7) };
const PART = 256 * 1024;
const beat = () => ({ done: 0, total: 0, at: 5 });

let directory = '';
let database: Database;
let kid = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gpd-test-parts-'));
  database = await openDatabase({ location: join(directory, 'gpd.db'), create: true });
  await migrate(database);
  kid = await addTenant(database, 'parts');
});
afterAll(async () => {
  await database.close();
  await rm(directory, { recursive: true });
});

let count = 0;
async function newJob(): Promise<string> {
  count += 1;
  const id = `job-${count}`;
  const hash = sha256(id).toString('hex');
  await insertJob(database, { hash, kid, actor: 'a', kind: 'export', subjects: [], at: 0 }, 1e6, 1);
  return id;
}
const seal = (id: string, chunks: readonly Buffer[], most?: number): Promise<number> =>
  sealExport({ database, keys: KEYS, id }, Readable.from(chunks), beat, most);
async function open(id: string, bytes: number, keys = KEYS): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of openExport({ database, keys, id }, bytes)) parts.push(part);
  return Buffer.concat(parts);
}

it('comes back byte for byte, whatever the sizes it was written in', async () => {
  const size = fc.oneof(
    fc.nat(3000),
    fc.constantFrom(PART - 1, PART, PART + 1, 2 * PART),
    fc.integer({ min: 0, max: 700_000 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(size, { maxLength: 5 }), async (sizes) => {
      const chunks = sizes.map((length, i) => Buffer.alloc(length, `${i}-and-more`));
      const whole = Buffer.concat(chunks);
      const id = await newJob();
      expect(await seal(id, chunks)).toBe(whole.length);
      expect((await open(id, whole.length)).equals(whole)).toBe(true);
    }),
    { numRuns: 25 },
  );
});

it('opens with its own id and key, in its own order, and not when a part is gone', async () => {
  const id = await newJob();
  const bytes = await seal(id, [Buffer.alloc(3 * PART, 'abc')]);
  const hash = sha256(id).toString('hex');
  await expect(open(id, bytes, { exports: Buffer.alloc(32, 8) })).rejects.toThrow();
  await expect(open(await newJob(), bytes)).rejects.toThrow();
  const parts = (work: (table: ReturnType<Database['read']>) => PromiseLike<unknown>) =>
    database.transaction((tx) => Promise.resolve(work(tx('console_job_parts').where({ hash }) as never)));
  const swap = async (from: number, to: number) =>
    parts((table) => table.where({ part: from }).update({ part: to }));
  await swap(0, 9);
  await swap(1, 0);
  await swap(9, 1);
  await expect(open(id, bytes)).rejects.toThrow();
  await swap(1, 9);
  await swap(0, 1);
  await swap(9, 0);
  expect((await open(id, bytes)).length).toBe(bytes);
  await parts((table) => table.where({ part: 2 }).delete());
  await expect(open(id, bytes)).rejects.toThrow();
});

it('stops with the first part after the job is gone, and before it is too much', async () => {
  const id = await newJob();
  const source = new PassThrough();
  const sealed = sealExport({ database, keys: KEYS, id }, source, beat);
  source.write(Buffer.alloc(PART));
  await expect
    .poll(() => database.read('console_job_parts').where({ hash: sha256(id).toString('hex') }))
    .toHaveLength(1);
  await deleteJob(database, sha256(id).toString('hex'));
  source.write(Buffer.alloc(PART));
  await expect(sealed).rejects.toThrow(JobGone);
  expect(source.destroyed).toBe(true);
  const large = await newJob();
  await expect(seal(large, [Buffer.alloc(10), Buffer.alloc(1)], 10)).rejects.toThrow('gpd dsar export');
  expect(await seal(large, [Buffer.alloc(10)], 10)).toBe(10);
});

const staff = { kid: 'parts', role: 'dpo' as const, ref: 'a', label: 'A' };
function jobsOf(faults: unknown[]) {
  const onJobFault = (error: unknown) => faults.push(error);
  const wrapper = makeMasterKey(randomBytes(32), randomBytes);
  const tenant = {
    kid: 'parts',
    settings: tenantSettingsSchema.parse({}),
    wrapper,
    webhooksFor: (event: string) => [event],
  };
  const tenantOf = () => tenant as unknown as ConsentTenant;
  const base = { database, tenantOf, keys: KEYS, random: randomBytes, clock: Date.now };
  return makeJobs({ ...base, onJobFault });
}

it('tells that an export is ready, and nothing that would open it', async () => {
  const jobs = jobsOf([]);
  const job = await jobs.open(staff, 'export', ['dev']);
  job.runFile({
    name: 'x.zip',
    type: 'application/zip',
    write: (output) => new Promise((resolve) => void output.end('all of it', () => resolve(null))),
  });
  await expect.poll(() => jobs.get(staff, job.id)).toMatchObject({ state: 'done' });
  const told = await database.read('webhook_outbox').where({ kid: 'parts' });
  expect(told).toMatchObject([{ event: 'export.ready', webhook: 'export.ready', request_id: null }]);
  await jobs.stop();
});

it('an export under way ends when an erasure takes its job, and nobody calls that a fault', async () => {
  const faults: unknown[] = [];
  const jobs = jobsOf(faults);
  const job = await jobs.open(staff, 'export', ['dev']);
  let stopped: unknown = null;
  job.runFile({
    name: 'x.zip',
    type: 'application/zip',
    write: (output, signal, report) =>
      new Promise((_resolve, reject) => {
        report(1, 2);
        output.write('some of it');
        signal.addEventListener('abort', () => {
          stopped = signal.reason;
          output.destroy();
          reject(new Error('aborted'));
        });
      }),
  });
  await expect
    .poll(() => jobs.get(staff, job.id), { timeout: 20_000 })
    .toMatchObject({ state: 'running', done: 1, total: 2 });
  await deleteJob(database, sha256(job.id).toString('hex'));
  await expect.poll(() => stopped, { timeout: 20_000 }).toBeInstanceOf(JobGone);
  await jobs.stop();
  expect(await jobs.get(staff, job.id)).toBeNull();
  expect(faults).toEqual([]);
});

it('a job that throws has failed and is told; one whose process stops has failed, and what is done stays', async () => {
  const faults: unknown[] = [];
  const jobs = jobsOf(faults);
  const bad = await jobs.open(staff, 'verify', []);
  bad.run(() => Promise.reject(new Error('a fault')));
  await expect.poll(() => jobs.get(staff, bad.id)).toMatchObject({ state: 'failed' });
  expect(faults).toHaveLength(1);
  const good = await jobs.open(staff, 'verify', []);
  good.run((report) => {
    report(3, 3);
    return Promise.resolve({ ok: true });
  });
  await expect
    .poll(() => jobs.get(staff, good.id))
    .toMatchObject({ state: 'done', done: 3, total: 3, result: { ok: true }, file: null });
  const slow = await jobs.open(staff, 'export', []);
  slow.runFile({
    name: 'x',
    type: 'y',
    write: (output, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          output.destroy();
          reject(new Error('aborted'));
        });
      }),
  });
  await jobs.stop();
  const later = jobsOf([]);
  expect(await later.get(staff, slow.id)).toMatchObject({ state: 'failed', file: null });
  expect(await later.get(staff, good.id)).toMatchObject({ state: 'done' });
  expect(await later.get({ ...staff, ref: 'b' }, good.id)).toBeNull();
  expect(await later.get({ ...staff, kid: 'q' }, good.id)).toBeNull();
  expect(faults).toHaveLength(1);
  await later.stop();
});
