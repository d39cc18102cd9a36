import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { verifyProof } from '../../../sdk/node/src/proof.ts';
import { EMPTY_ROOT } from '../../../src/ledger/merkle.ts';
import { addApiKey } from '../../support/api-key.ts';
import { tempDir } from '../../support/command.ts';
import { execute } from '../../support/database.ts';
import { freePort } from '../../support/ports.ts';
import { type Gpd, initGpd, startGpd } from '../../support/server.ts';
import { describeWithTool } from '../../support/tools.ts';

/** A reference witness that is not ours (litewitness, C2SP tlog-witness) cosigns this log, and refuses a copy of it. */

const MODULE = 'filippo.io/torchwood';
const VERSION = 'v0.9.0';
/** Kept between runs: to build it takes a minute. */
const BIN = fileURLToPath(new URL(`../../../node_modules/.cache/torchwood-${VERSION}`, import.meta.url));
const PROGRAM = join(BIN, 'litewitness');

const run = promisify(execFile);
/** Ends what hangs. */
const PATIENCE = { timeout: 60_000, interval: 20 };

/** Builds the witness once. @returns why it cannot, or null */
function missingWitness(): string | null {
  const needs = [
    ['go', 'version'],
    ['ssh-agent', '-h'],
  ];
  const missing = needs.find(([name = '', ...args]) => spawnSync(name, args).error !== undefined);
  if (missing) return `${missing[0]} is not installed`;
  if (existsSync(PROGRAM)) return null;
  const scratch = tempDir('go');
  // Go makes modules read-only by default, and then the scratch folder cannot be removed.
  const env = { ...process.env, GOPATH: scratch, GOBIN: BIN, GOFLAGS: '-modcacherw' };
  const command = `${MODULE}/cmd/litewitness@${VERSION}`;
  const built = spawnSync('go', ['install', command], { env, cwd: scratch, encoding: 'utf8' });
  return built.status === 0 ? null : `${MODULE} cannot be built: ${built.stderr.trim().split('\n').at(-1)}`;
}

interface Witness {
  readonly vkey: string;
  readonly url: string;
  addLog(vkey: string): Promise<void>;
}

const started: ChildProcess[] = [];

/** Its Ed25519 key is held by an ssh-agent, as its manual says. */
async function startWitness(): Promise<Witness> {
  const folder = tempDir('witness');
  // The name of its database is the one that `execute` opens.
  const [key, socket, db] = [join(folder, 'key'), join(folder, 'agent'), join(folder, 'gpd.db')];
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  started.push(spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' }));
  await vi.waitFor(() => expect(existsSync(socket)).toBe(true), PATIENCE);
  await run('ssh-add', ['-q', key], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
  const [, fingerprint = ''] = (await run('ssh-keygen', ['-l', '-f', key])).stdout.split(' ');
  const port = await freePort();
  const named = ['-name', 'witness.example/w', '-key', fingerprint, '-ssh-agent', socket];
  const witness = spawn(PROGRAM, [...named, '-db', db, '-listen', `127.0.0.1:${port}`]);
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

describeWithTool(
  'log/litewitness',
  missingWitness(),
  () => {
    beforeAll(async () => {
      witness = await startWitness();
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
      expect(proven).toMatchObject({ seq, witnesses: [{ name: 'witness.example/w' }] });
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
