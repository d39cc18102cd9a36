import { execFile, spawn } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { addApiKey } from '../../support/api-key.ts';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { type Gpd, startGpd } from '../../support/server.ts';
import { describeWithTool } from '../../support/tools.ts';
import { createCosigner } from '../cosigner.ts';
import { goTool, missingGoTool } from '../go-tool.ts';

/**
 * Programs that know nothing of gpd read a tenant's log over HTTP: fsck of Tessera, and a client of Go's checksum
 * database, which also judges the policy by torchwood's parser.
 */

const TESSERA = 'v1.0.4';
const FSCK = goTool(`tessera-${TESSERA}`, 'fsck');
const CLIENT_SOURCE = fileURLToPath(new URL('go-client/', import.meta.url));
const CLIENT = goTool('go-client-torchwood-v0.9.0', 'go-client');

const run = promisify(execFile);
/** Ends what hangs. */
const PATIENCE = { timeout: 60_000, interval: 20 };

function missingReaders(): string | null {
  const scratch = tempDir('go-client');
  cpSync(CLIENT_SOURCE, scratch, { recursive: true });
  const fsckModule = `github.com/transparency-dev/tessera/cmd/fsck@${TESSERA}`;
  return missingGoTool(FSCK, fsckModule) ?? missingGoTool(CLIENT, '.', scratch);
}

/** More than one tile of 256, so that a full and a partial one are read. */
const ENTRIES = 270;

let gpd: Gpd;
let key: string;
let vkey: string;
const folder = tempDir('readers');

const base = (): string => `${gpd.url}/v1/ledger`;

/** Waits for one of these outcomes in the log of fsck, which does not end when a tile fails. */
async function fsck(outcome: RegExp): Promise<string> {
  const file = join(folder, 'vkey');
  writeFileSync(file, vkey);
  const read = ['--storage_url', `${base()}/`, '--bearer_token', key, '--public_key', file];
  const child = spawn(FSCK, [...read, '--ui=false', '--logtostderr', '--v=1']);
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  try {
    await vi.waitFor(() => expect(output).toMatch(outcome), PATIENCE);
  } finally {
    child.kill();
  }
  return output;
}

async function client(policy: string) {
  const file = join(folder, 'policy');
  writeFileSync(file, policy);
  return run(CLIENT, [base(), key, vkey, file]);
}

const policyOf = async (): Promise<string> =>
  (await gpd.json<{ policy: string }>(['witness', 'policy', KID])).policy;

describeWithTool(
  'log/readers',
  missingReaders(),
  () => {
    beforeAll(async () => {
      gpd = await startGpd();
      key = await addApiKey(gpd);
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      vkey = (await (await fetch(`${base()}/vkey`, { headers })).text()).trim();
      for (let i = 0; i < ENTRIES; i += 1) {
        const body = JSON.stringify({ principalId: `p-${i}`, purposes: ['device-identification'] });
        const granted = await fetch(`${gpd.url}/v1/consent/grant`, { method: 'POST', headers, body });
        expect(granted.status).toBe(201);
      }
    });
    afterAll(async () => {
      await gpd.stop();
    });

    it('the checksum database’s library proves inclusion and consistency, and torchwood reads the policy', async () => {
      const { stdout } = await client(await policyOf());
      const [, count] = /^entries (\d+)$/m.exec(stdout) ?? [];
      expect(Number(count)).toBeGreaterThanOrEqual(ENTRIES);
      expect(stdout).toContain('policy satisfied');
    });

    it('torchwood reads a policy with witnesses, and says that none has cosigned', async () => {
      const keys = [1, 2].map((n) => createCosigner('same.example/w', Buffer.alloc(32, n)).vkey);
      const settings = {
        GPD_WITNESSES: keys.map((one, i) => `${one}@http://127.0.0.1:9/${i}`).join(','),
        GPD_WITNESS_POLICY: '1',
      };
      const witnessed = await startGpd({ settings });
      const { policy } = await witnessed.json<{ policy: string }>(['witness', 'policy', KID]);
      await witnessed.stop();
      const [, ...witnesses] = policy.split('\n');
      const [log] = (await policyOf()).split('\n');
      const { stdout } = await client([log, ...witnesses].join('\n'));
      expect(stdout).toMatch(/^policy (?!satisfied)/m);
    });

    it('fsck of Tessera computes the same tree from the entries, and finds a changed one', async () => {
      expect(await fsck(/Completed ranges|Invalid/)).not.toMatch(/Invalid|fsck failed/);
      // Another valid entry in its place: only the hashes tell.
      await execute(
        gpd.dataDir,
        'UPDATE ledger_entries SET entry = (SELECT entry FROM ledger_entries WHERE seq = 101) WHERE seq = 100',
      );
      await fsck(/Tiles\/0: \n\[0, 1\):Invalid/);
    });
  },
  { optional: true },
);
