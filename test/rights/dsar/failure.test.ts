import { readdirSync } from 'node:fs';
import { PassThrough, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../../src/ingest/verdict/classify.ts';
import { writeArchive } from '../../../src/rights/dsar/archive-files.ts';
import { createNotice } from '../../../src/rights/dsar/dsar.ts';
import { type Dsar, describeDecision } from '../../../src/rights/dsar/service.ts';
import { openSpool } from '../../../src/rights/dsar/spool-files.ts';
import { tenantSettingsSchema } from '../../../src/tenants/settings.ts';
import { tempDir } from '../../support/command.ts';
import { createIngestTenant, createVerdict } from '../../support/make.ts';

/** Exports that break off: the error comes out, the reading stops, nothing lies about. */

const PAGE = 500;

interface Watched {
  readonly dsar: Dsar;
  /** Pages that were read, and whether the reading was ended. */
  readonly state: { pages: number; ended: boolean };
}

function watch(pages: number, failAt = -1): Watched {
  const state = { pages: 0, ended: false };
  const tenant = createIngestTenant();
  const verdict = createVerdict();
  const storedDecision = { requestId: verdict.requestId, verdict, summary: null };
  const notice = createNotice(tenantSettingsSchema.parse({ origins: [] }), []);
  const subject = { reference: 'ref', tenant: 'acme', visitorId: null, device: null, linkedRequests: [] };
  const head = {
    subject,
    generatedAt: '2026-11-20T12:00:00.000Z',
    override: null,
    contests: [],
    complaints: [],
    consent: null,
  };
  return {
    state,
    dsar: {
      total: pages * PAGE,
      head: { ...head, notice },
      async *decisions() {
        try {
          for (; state.pages < pages; state.pages += 1) {
            if (state.pages === failAt) throw new Error('the database went away');
            yield Array.from({ length: PAGE }, () => describeDecision(storedDecision, tenant, undefined));
          }
        } finally {
          state.ended = true;
        }
      },
    },
  };
}

const sign = () => Buffer.from('signature');
const signer = { certificate: '', fingerprint: 'AA:BB', notAfter: new Date(0), sign };
const depsIn = (spoolDirectory: string) => ({
  policyOf: () => DEFAULT_POLICY,
  signer: async () => signer,
  version: 'test',
  spoolDirectory,
});
type Given = Parameters<typeof writeArchive> extends [unknown, ...infer Rest] ? Rest : never;
const write = (...args: Given) => writeArchive(depsIn(tempDir('spool')), ...args);

describe('an archive that breaks off', () => {
  it('because the decisions cannot be read', async () => {
    const spoolDirectory = tempDir('spool');
    const { dsar, state } = watch(40, 7);
    const output = new PassThrough().resume();
    await expect(writeArchive(depsIn(spoolDirectory), dsar, output)).rejects.toThrow(
      'the database went away',
    );
    expect(output.destroyed).toBe(true);
    expect(state).toEqual({ pages: 7, ended: true });
    expect(readdirSync(spoolDirectory)).toEqual([]);
  });

  it('because nothing more fits on the disk', async () => {
    const { dsar, state } = watch(400);
    let room = 5000;
    const output = new Writable({
      write(chunk: Buffer, _encoding, done) {
        room -= chunk.length;
        done(room < 0 ? new Error('ENOSPC') : null);
      },
    });
    await expect(write(dsar, output)).rejects.toThrow('ENOSPC');
    expect(state.ended).toBe(true);
    expect(state.pages).toBeLessThan(400);
  });

  it('because somebody stops it', async () => {
    const { dsar, state } = watch(400);
    const abort = new AbortController();
    const onProgress = (done: number): void => {
      if (done >= 2000) abort.abort();
    };
    const archived = write(dsar, new PassThrough().resume(), {
      signal: abort.signal,
      onProgress,
    });
    await expect(archived).rejects.toMatchObject({ name: 'AbortError' });
    expect(state.ended).toBe(true);
    expect(state.pages).toBeLessThan(20);
  });

  it('because nobody can sign it: then nothing was written at all', async () => {
    const deps = {
      ...depsIn(tempDir('spool')),
      signer: () => Promise.reject(new Error('another master key')),
    };
    const output = new PassThrough();
    await expect(writeArchive(deps, watch(1).dsar, output)).rejects.toThrow('another master key');
    expect(output.read()).toBeNull();
  });

  it('waits for a slow reader instead of reading on', async () => {
    const { dsar, state } = watch(2000);
    const abort = new AbortController();
    const archived = write(dsar, new PassThrough(), { signal: abort.signal });
    const failed = expect(archived).rejects.toThrow();
    for (let [last, still] = [0, 0]; still < 3; last = state.pages) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      still = last > 0 && state.pages === last ? still + 1 : 0;
    }
    expect(state.pages).toBeLessThan(1000);
    abort.abort();
    await failed;
  });

  it('tells how far it is', async () => {
    const progress: [number, number][] = [];
    const onProgress = (done: number, total: number) => void progress.push([done, total]);
    const result = await write(watch(3).dsar, new PassThrough().resume(), { onProgress });
    expect(progress).toEqual([500, 1000, 1500].map((done) => [done, 1500]));
    expect(result).toMatchObject({ decisions: 1500, encrypted: false });
  });
});

it('the spool returns what was written, and has no file name', async () => {
  const directory = tempDir('spool');
  const spool = await openSpool(directory);
  const parts = Array.from({ length: 3000 }, (_, i) => `line ${i} – ${'x'.repeat(50)}\r\n`);
  for (const part of parts) await spool.write(part);
  expect(readdirSync(directory)).toEqual([]);
  const found: Buffer[] = [];
  for await (const chunk of spool.read()) found.push(chunk);
  await spool.close();
  expect(Buffer.concat(found).toString()).toBe(parts.join(''));
});
