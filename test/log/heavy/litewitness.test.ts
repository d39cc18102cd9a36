import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { verifyProof } from '../../../sdk/node/src/proof.ts';
import { EMPTY_ROOT } from '../../../src/ledger/merkle.ts';
import { createVerifierKey, openSeed } from '../../../src/ledger/note.ts';
import { addApiKey } from '../../support/api-key.ts';
import { tempDir } from '../../support/command.ts';
import { execute } from '../../support/database.ts';
import { freePort } from '../../support/ports.ts';
import { type Gpd, initGpd, startGpd } from '../../support/server.ts';
import { describeWithTool } from '../../support/tools.ts';
import { createCosigner } from '../cosigner.ts';
import { goTool, missingGoTool } from '../go-tool.ts';

/** Witnesses that are not ours (litewitness, omniwitness: C2SP tlog-witness) cosign this log, and refuse a copy of it. */

const TORCHWOOD = 'v0.9.0';
const LITEWITNESS = goTool(`torchwood-${TORCHWOOD}`, 'litewitness');
const WITNESS = 'v0.0.0-20260720115447-2e1c6971d19e';
const OMNIWITNESS = goTool(`witness-${WITNESS}`, 'omniwitness');
const NAME = 'witness.example/w';

const run = promisify(execFile);
/** Ends what hangs. */
const PATIENCE = { timeout: 60_000, interval: 20 };

function missingLitewitness(): string | null {
  if (spawnSync('ssh-agent', ['-h']).error !== undefined) return 'ssh-agent is not installed';
  return missingGoTool(LITEWITNESS, `filippo.io/torchwood/cmd/litewitness@${TORCHWOOD}`);
}

const missingOmniwitness = (): string | null =>
  missingGoTool(OMNIWITNESS, `github.com/transparency-dev/witness/cmd/omniwitness@${WITNESS}`);

interface Witness {
  readonly vkey: string;
  readonly url: string;
  addLog(vkey: string): Promise<void>;
}

const started: ChildProcess[] = [];

/** Its Ed25519 key is held by an ssh-agent, as its manual says. */
async function startLitewitness(): Promise<Witness> {
  const folder = tempDir('witness');
  // The name of its database is the one that `execute` opens.
  const [key, socket, db] = [join(folder, 'key'), join(folder, 'agent'), join(folder, 'gpd.db')];
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  started.push(spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' }));
  await vi.waitFor(() => expect(existsSync(socket)).toBe(true), PATIENCE);
  await run('ssh-add', ['-q', key], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
  const [, fingerprint = ''] = (await run('ssh-keygen', ['-l', '-f', key])).stdout.split(' ');
  const port = await freePort();
  const named = ['-name', NAME, '-key', fingerprint, '-ssh-agent', socket];
  const witness = spawn(LITEWITNESS, [...named, '-db', db, '-listen', `127.0.0.1:${port}`]);
  started.push(witness);
  let output = '';
  witness.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const url = `http://127.0.0.1:${port}`;
  await vi.waitFor(async () => expect((await fetch(url)).status, output).toBe(200), PATIENCE);
  return {
    vkey: /vkey="?([^\s"]+)/.exec(output)?.[1] ?? output,
    url,
    async addLog(vkey) {
      const origin = vkey.slice(0, vkey.indexOf('+'));
      // Its witnessctl writes these rows, an empty log and its key, but needs more modules than the
      // witness.
      await execute(
        folder,
        `INSERT INTO log VALUES ('${origin}', 0, '${EMPTY_ROOT.toString('base64')}')`,
        `INSERT INTO key VALUES ('${origin}', '${vkey}')`,
      );
    },
  };
}

/** It reads its logs as it starts, so that it starts with the first. */
async function startOmniwitness(): Promise<Witness> {
  const folder = tempDir('witness');
  const [key, logs, db] = [join(folder, 'key'), join(folder, 'logs.yaml'), join(folder, 'witness.db')];
  const seed = Buffer.alloc(32, 7);
  const { name, id } = createVerifierKey(NAME, openSeed(seed).publicKey);
  const secret = Buffer.concat([Buffer.from([1]), seed]).toString('base64');
  writeFileSync(key, `PRIVATE+KEY+${name}+${Buffer.from(id).toString('hex')}+${secret}\n`);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  return {
    vkey: createCosigner(NAME, seed).vkey,
    url,
    async addLog(vkey) {
      const origin = vkey.slice(0, vkey.indexOf('+'));
      const entry = { Origin: origin, URL: 'http://127.0.0.1:9/', PublicKey: vkey, Feeder: 'none' };
      // JSON is YAML too.
      writeFileSync(logs, JSON.stringify({ Logs: [entry] }));
      const listen = ['-listen', `127.0.0.1:${port}`, '-metrics_listen', ''];
      const keys = ['-private_key_path', key, '-db_file', db, '-additional_logs', logs];
      started.push(spawn(OMNIWITNESS, [...listen, ...keys], { stdio: 'ignore' }));
      await vi.waitFor(() => fetch(url), PATIENCE);
    },
  };
}

interface Status {
  readonly logs: readonly {
    readonly size: number;
    readonly witnesses: readonly { readonly size: number }[];
  }[];
}

const gpds: Gpd[] = [];
let witness: Witness;
let dataDir: string;

async function serve(data: string) {
  const settings = { GPD_WITNESSES: `${witness.vkey}@${witness.url}` };
  const gpd = await startGpd({ dataDir: data, settings, app: { intervals: { housekeeping: 100 } } });
  gpds.push(gpd);
  const headers = { authorization: `Bearer ${await addApiKey(gpd)}`, 'content-type': 'application/json' };
  const read = async (path: string) => (await fetch(`${gpd.url}${path}`, { headers })).text();
  /** Entries of the log, and how many of them the witness has cosigned. */
  const sizes = async () => {
    const { logs } = await gpd.json<Status>(['witness', 'status']);
    return { size: logs[0]?.size ?? 0, cosigned: logs[0]?.witnesses[0]?.size ?? 0 };
  };
  return {
    gpd,
    read,
    async grant(principalId: string) {
      const body = JSON.stringify({ principalId, purposes: ['device-identification'] });
      const answer = await fetch(`${gpd.url}/v1/consent/grant`, { method: 'POST', headers, body });
      expect(answer.status).toBe(201);
      return ((await answer.json()) as { seq: number }).seq;
    },
    sizes,
    /** Reading the newest checkpoint signs it. */
    isCosigned: async () => {
      await read('/v1/ledger/checkpoint');
      const { size, cosigned } = await sizes();
      return cosigned === size;
    },
  };
}

const describeWitness = (name: string, missing: string | null, start: () => Promise<Witness>): void =>
  describeWithTool(
    name,
    missing,
    () => {
      beforeAll(async () => {
        witness = await start();
        dataDir = (await initGpd()).dataDir;
      });
      afterAll(async () => {
        for (const gpd of gpds) await gpd.stop();
        for (const child of started) child.kill();
      });

      it('cosigns the log as it grows, and refuses a copy of the log that went on by itself', async () => {
        const log = await serve(dataDir);
        const vkey = (await log.read('/v1/ledger/vkey')).trim();
        await witness.addLog(vkey);
        await log.grant('anna');
        const seq = await log.grant('bert');
        await expect.poll(log.isCosigned).toBe(true);
        const proof = await log.read(`/v1/consent/proofs/${seq}`);
        const proven = verifyProof(proof, { vkey, witnesses: [witness.vkey], minWitnesses: 1 });
        expect(proven).toMatchObject({ seq, witnesses: [{ name: NAME }] });
        await log.gpd.stop();

        // All of it, keys and checkpoints.log too; then both go on with other people.
        const copy = join(tempDir('copy'), 'gpd-data');
        cpSync(dataDir, copy, { recursive: true });
        const honest = await serve(dataDir);
        for (let i = 0; i < 3; i += 1) await honest.grant(`honest-${i}`);
        await expect.poll(honest.isCosigned).toBe(true);
        const { cosigned } = await honest.sizes();
        await honest.gpd.stop();

        const forked = await serve(copy);
        for (let i = 0; i < 5; i += 1) await forked.grant(`forger-${i}`);
        expect(await forked.isCosigned()).toBe(false);
        await expect.poll(() => forked.gpd.logs()).toContain('"event":"log.fork"');
        expect((await forked.sizes()).cosigned).toBeLessThan(cosigned);
      });
    },
    { optional: true },
  );

describeWitness('log/litewitness', missingLitewitness(), startLitewitness);
describeWitness('log/omniwitness', missingOmniwitness(), startOmniwitness);
