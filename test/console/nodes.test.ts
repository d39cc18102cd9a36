import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { type Balancer, startBalancer } from './support/balancer.ts';
import { type Console, signIn, startConsole, type Visitor, WRITTEN_WITHIN } from './support/console.ts';
import { change, rows } from './support/data.ts';

/* On a machine with other work. */
vi.setConfig({ testTimeout: 60_000 });

/** Two nodes on one database behind a balancer that sends nobody back to where they were. */

let balancer: Balancer;
let site: Console;
let second: Gpd;
let dora: Visitor;
let csrf = '';

beforeAll(async () => {
  balancer = await startBalancer();
  site = await startConsole({ base: balancer.url });
  second = await startGpd({ dataDir: site.gpd.dataDir, settings: site.settings });
  balancer.use([site.gpd.port, second.port]);
  dora = await signIn(site.url, 'dora');
  csrf = await dora.csrf();
}, 60_000);
afterAll(async () => {
  await Promise.all([site.stop(), second.stop(), balancer.close()]);
});

const TABLES = ['console_jobs', 'console_job_subjects', 'console_job_parts'];
const counts = async (): Promise<number[]> =>
  Promise.all(TABLES.map(async (table) => (await rows(site, table)).length));

/** Address of the page of an export that is ready. */
async function exported(kind: string, id: string): Promise<string> {
  const started = await dora.post('/console/subjects/export', { csrf, kind, id, unnamed: 'on' });
  expect(started.status).toBe(303);
  const job = started.headers.location ?? '';
  await expect.poll(async () => (await dora.get(job)).text, WRITTEN_WITHIN).toContain('The export is ready');
  return job;
}

async function erase(kind: string, id: string): Promise<void> {
  const plan = (await dora.post('/console/subjects/plan', { csrf, kind, id })).text;
  const confirm = /<code>([0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4})<\/code>/.exec(plan)?.[1] ?? '';
  const done = await dora.post('/console/subjects/erase', { csrf, kind, id, confirm });
  expect(done.status).toBe(303);
}

describe('an export behind a balancer', () => {
  it('is watched and fetched on either node, whole, by whoever began it and nobody else', async () => {
    await change(site, (tx) => tx('console_jobs').delete());
    const { requestId, visitorId } = await site.decide('balanced');
    const job = await exported('request', requestId);
    const files = [];
    for (let i = 0; i < 4; i += 1) files.push(await dora.get(`${job}/file`));
    expect(files.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    for (const { text, headers } of files) {
      expect(text.slice(0, 2)).toBe('PK');
      expect(text).toBe(files[0]?.text);
      expect(Number(headers['content-length'])).toBeGreaterThan(1000);
    }
    for (const account of ['olaf', 'ada', 'dpo-2']) {
      const other = await signIn(site.url, account);
      const [page, file] = [await other.get(job), await other.get(`${job}/file`)];
      // A reviewer of the tenant is told of the role before anything is looked up.
      expect([page.status, file.status], account).toEqual([404, account === 'ada' ? 403 : 404]);
    }
    // Its id opens it, and stands in no table; nor does what it holds stand there in the clear.
    const stored = await Promise.all(TABLES.map((table) => rows<Record<string, unknown>>(site, table)));
    const id = job.split('/').at(-1) ?? '';
    const text = JSON.stringify(stored[0]);
    for (const secret of [id, visitorId, requestId]) expect(text).not.toContain(secret);
    const [part] = stored[2] as { sealed: Buffer }[];
    expect(part?.sealed.subarray(0, 2).toString('latin1')).not.toBe('PK');
    expect(part?.sealed.length).toBe(Number(files[0]?.headers['content-length']) + 16);
  });

  it.each(['visitor', 'request'] as const)(
    'an erasure by %s takes the export along, on every node',
    async (kind) => {
      const { requestId, visitorId } = await site.decide(`erased-by-${kind}`);
      const other = await site.decide(`left-by-${kind}`);
      const job = await exported('visitor', visitorId);
      const kept = await exported('request', other.requestId);
      const before = await counts();
      // A plan tries the erasure, and takes nothing.
      await dora.post('/console/subjects/plan', {
        csrf,
        kind,
        id: kind === 'visitor' ? visitorId : requestId,
      });
      expect(await counts()).toEqual(before);
      await erase(kind, kind === 'visitor' ? visitorId : requestId);
      expect(await counts()).toEqual(before.map((count) => count - 1));
      for (let i = 0; i < 2; i += 1) {
        for (const path of [job, `${job}/file`]) expect((await dora.get(path)).status).toBe(404);
        expect((await dora.get(`${kept}/file`)).status).toBe(200);
      }
    },
  );

  it('ends with its time, and what a node left behind it is told as failed', async () => {
    const { requestId } = await site.decide('timed');
    const job = await exported('request', requestId);
    await change(site, (tx) => tx('console_jobs').update({ beat_at: Date.now() - 15 * 60_000 }));
    for (const path of [job, `${job}/file`]) expect((await dora.get(path)).status).toBe(404);
    const again = await exported('request', requestId);
    await change(site, (tx) => tx('console_jobs').update({ state: 'running', beat_at: Date.now() - 31_000 }));
    const page = await dora.get(again);
    expect(page.text).toContain('The export failed');
    expect(page.text).not.toContain('http-equiv="refresh"');
    expect((await dora.get(`${again}/file`)).status).toBe(404);
  });

  it('three of a tenant at a time, over all nodes; a fourth is told to wait', async () => {
    const now = Date.now();
    const row = {
      kid: 'acme',
      actor: 'somebody',
      kind: 'verify',
      state: 'running',
      done: 0,
      total: 0,
      started_at: now,
      beat_at: now,
    };
    await change(site, async (tx) => {
      await tx('console_jobs').delete();
      await tx('console_jobs').insert(['a', 'b', 'c'].map((hash) => ({ ...row, hash })));
    });
    const refused = await dora.post('/console/ledger/verify', { csrf });
    expect(refused.status).toBe(503);
    expect(refused.headers['retry-after']).toBe('10');
    await change(site, (tx) =>
      tx('console_jobs')
        .where({ hash: 'a' })
        .update({ beat_at: now - 31_000 }),
    );
    expect((await dora.post('/console/ledger/verify', { csrf })).status).toBe(303);
    await change(site, (tx) => tx('console_jobs').delete());
  });

  it('a verification is read on either node', async () => {
    const job = (await dora.post('/console/ledger/verify', { csrf })).headers.location ?? '';
    await expect.poll(async () => (await dora.get(job)).text, SEEN_WITHIN).toContain('The ledger is whole');
    expect((await dora.get(job)).text).toContain('The ledger is whole');
    expect((await dora.get(`${job}/file`)).status).toBe(404);
  });

  it('a node that stops leaves what is done to the others', async () => {
    const { requestId } = await site.decide('stopped');
    const job = await exported('request', requestId);
    balancer.use([site.gpd.port]);
    expect((await second.stop()).code).toBe(0);
    expect((await dora.get(`${job}/file`)).status).toBe(200);
    second = await startGpd({ dataDir: site.gpd.dataDir, settings: site.settings });
    balancer.use([site.gpd.port, second.port]);
  });
});
