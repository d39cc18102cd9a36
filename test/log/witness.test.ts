import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startWitness } from '../../src/cli/commands/witness.ts';
import { loadConfig } from '../../src/config.ts';
import { makeLogger } from '../../src/ops/log.ts';
import { openStore, type Store } from '../../src/tenants/installation-files.ts';
import { addApiKey } from '../support/api-key.ts';
import { cleanEnvironment, collector, gpdJson, runGpd, tempDir } from '../support/command.ts';
import { type Gpd, initGpd, startGpd } from '../support/server.ts';

/** Two gpd that witness each other, with real servers; then one of them is forked on purpose. */

interface Status {
  readonly witness: string;
  readonly logs: readonly {
    readonly origin: string;
    readonly size: number;
    readonly refused: readonly {
      readonly proven: boolean;
      readonly kept: string;
      readonly refused: string;
    }[];
  }[];
}

const dash = '\u2014';
const closing: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

async function startWitnessOf(dataDir: string, logs = collector()) {
  const config = loadConfig({
    environment: cleanEnvironment({ GPD_DATA_DIR: dataDir }),
  });
  const store: Store = await openStore(config);
  const witness = await startWitness(store, config, { host: '127.0.0.1', port: 0 }, makeLogger('info', logs));
  closing.push(async () => {
    await witness.stop();
    await store.database.close();
  });
  return { ...witness, logs: logs.text };
}

const statusOf = (dataDir: string): Promise<Status> =>
  gpdJson<Status>(['witness', 'status'], { env: { GPD_DATA_DIR: dataDir } }, runGpd);

async function serve(dataDir: string, kid: string, witnesses: string) {
  const gpd = await startGpd({ dataDir, settings: { GPD_WITNESSES: witnesses } });
  closing.push(() => gpd.stop());
  const key = await addApiKey(gpd, 'secret', kid);
  return { gpd, key };
}

const authorized = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' });

async function grant({ gpd, key }: { gpd: Gpd; key: string }, principalId: string): Promise<void> {
  const body = JSON.stringify({ principalId, purposes: ['device-identification'] });
  const answer = await fetch(`${gpd.url}/v1/consent/grant`, {
    method: 'POST',
    headers: authorized(key),
    body,
  });
  expect(answer.status).toBe(201);
}

async function read({ gpd, key }: { gpd: Gpd; key: string }, path: string): Promise<string> {
  return (await fetch(`${gpd.url}${path}`, { headers: authorized(key) })).text();
}

const sizeOf = (note: string): number => Number(note.split('\n')[1]);
const cosignatures = (note: string): number =>
  note.split('\n').filter((line) => line.startsWith(`${dash} `)).length - 1;

describe('two gpd that witness each other', () => {
  let a: { gpd: Gpd; key: string };
  let b: { gpd: Gpd; key: string };
  let dirs: { a: string; b: string };
  let urls: { a: string; b: string };
  let before: string;

  beforeAll(async () => {
    const [left, right] = [
      await initGpd([{ kid: 'alpha', origins: ['https://alpha.example'] }]),
      await initGpd([{ kid: 'beta', origins: ['https://beta.example'] }]),
    ];
    dirs = { a: left.dataDir, b: right.dataDir };
    const [wa, wb] = [await startWitnessOf(dirs.a), await startWitnessOf(dirs.b)];
    urls = { a: `${wa.vkey}@${wa.url}`, b: `${wb.vkey}@${wb.url}` };
    a = await serve(dirs.a, 'alpha', urls.b);
    b = await serve(dirs.b, 'beta', urls.a);
    for (const [log, kid, witness] of [
      [a, 'alpha', dirs.b],
      [b, 'beta', dirs.a],
    ] as const) {
      const vkey = (await read(log, '/v1/ledger/vkey')).trim();
      const origin = vkey.slice(0, vkey.indexOf('+'));
      expect(origin).toMatch(new RegExp(`/ledger/${kid}$`));
      await gpdJson(['witness', 'add', vkey, origin], { env: { GPD_DATA_DIR: witness } }, runGpd);
    }
  });

  it('cosign each other, in the checkpoint and in tlog-proof', async () => {
    for (const log of [a, b]) {
      await grant(log, 'anna');
      await expect.poll(async () => cosignatures(await read(log, '/v1/ledger/checkpoint'))).toBe(1);
    }
    const { stdout } = await a.gpd.cli(['consent', 'verify', 'alpha', '--json'], {
      env: { GPD_WITNESSES: urls.b },
    });
    const { size } = JSON.parse(stdout) as { size: number };
    const proof = await read(a, `/v1/consent/proofs/${size - 1}`);
    expect(cosignatures(proof.slice(proof.indexOf('\n\n') + 2))).toBe(1);
    expect((await statusOf(dirs.b)).logs[0]).toMatchObject({ size, refused: [] });
  });

  it('refuse the one that was forked on purpose, keep both notes, and tell a webhook', async () => {
    const told: string[] = [];
    const receiver = createServer((request, response) => {
      request.on('data', (chunk: Buffer) => told.push(chunk.toString())).on('end', () => response.end());
    }).listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    closing.push(async () => receiver.close());
    const target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    await b.gpd.json(['webhooks', 'add', 'beta', target, '--allow-private', '--event', 'log.fork']);
    // A copy of all of it, keys and checkpoints.log too; then both go on with other people.
    await a.gpd.stop();
    const copy = join(tempDir('fork'), 'gpd-data');
    cpSync(dirs.a, copy, { recursive: true });
    a = await serve(dirs.a, 'alpha', urls.b);
    const isPower = (n: number): boolean => (n & (n - 1)) === 0;
    const begin = sizeOf(await read(a, '/v1/ledger/checkpoint'));
    let people = 0;
    do {
      await grant(a, `honest-${people}`);
      people += 1;
    } while (isPower(begin + people));
    await expect
      .poll(
        async () => {
          before = await read(a, '/v1/ledger/checkpoint');
          return cosignatures(before) * sizeOf(before);
        },
        { timeout: 15_000 },
      )
      .toBe(begin + people);
    expect(cosignatures(before)).toBe(1);
    await a.gpd.stop();

    const forked = await serve(copy, 'alpha', urls.b);
    for (let i = 0; i < people + 2; i += 1) await grant(forked, `forger-${i}`);
    await expect
      .poll(
        async () => {
          await read(forked, '/v1/ledger/checkpoint');
          return (await statusOf(dirs.b)).logs[0]?.refused;
        },
        { timeout: 15_000 },
      )
      .toHaveLength(1);
    const [evidence] = (await statusOf(dirs.b)).logs[0]?.refused ?? [];
    expect(evidence?.proven).toBe(true);
    expect(before.startsWith(evidence?.kept ?? '-')).toBe(true);
    expect(sizeOf(evidence?.refused ?? '')).toBeGreaterThan(begin + people - 1);
    expect((await statusOf(dirs.b)).logs[0]).toMatchObject({ size: begin + people });
    // What is told as witnessed is from before the fork.
    expect(sizeOf(await read(forked, '/v1/ledger/checkpoint'))).toBe(begin);
    await expect.poll(() => told.join('')).toContain('"type":"log.fork"');
    expect(JSON.parse(told[0] ?? '{}')).toMatchObject({ data: { proven: true, kept: evidence?.kept } });
    await expect.poll(() => forked.gpd.logs()).toContain('"event":"log.fork","tenant":"alpha"');
    if (process.env['SHOW']) process.stdout.write(`${JSON.stringify({ evidence }, null, 1)}\n${told[0]}\n`);
  });
});
