import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Environment, runGpd, runProgram, tempDir } from '../../support/command.ts';
import { selfSigned } from '../../support/self-signed.ts';
import { type Gpd, startGpd } from '../../support/server.ts';

/** Commands reach a server with TLS by its local address, although its certificate names only the public host. */

const HEALTH = fileURLToPath(new URL('../../../bin/health.mjs', import.meta.url));

function write(files: Readonly<Record<string, string>>) {
  const directory = tempDir('tls');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return { GPD_TLS_CERT: join(directory, 'server.crt'), GPD_TLS_KEY: join(directory, 'server.key') };
}

let gpd: Gpd;
const here = { GPD_BASE_URL: 'https://id.shop.example', ...write(selfSigned('named')) };
beforeAll(async () => {
  gpd = await startGpd({ settings: here });
});
afterAll(() => gpd.stop());

interface Answers {
  readonly server: Readonly<Record<string, unknown>>;
  readonly checks: readonly { readonly id: string; readonly status: string; readonly detail: string }[];
}

async function askAll(tls: Environment) {
  const env = { ...here, ...tls, GPD_DATA_DIR: gpd.dataDir, GPD_HOST: '0.0.0.0', GPD_PORT: String(gpd.port) };
  const [status, doctor, health] = await Promise.all([
    runGpd(['status', '--json'], { env }),
    runGpd(['doctor', '--json'], { env }),
    runProgram([], { program: HEALTH, env }),
  ]);
  const { server } = JSON.parse(status.stdout) as Answers;
  const { checks } = JSON.parse(doctor.stdout) as Answers;
  return { server, check: checks.find(({ id }) => id === 'server.health'), health };
}

describe('the server on this machine, with GPD_TLS_CERT', () => {
  it('is reached by gpd status, gpd doctor and the health check', async () => {
    const { server, check, health } = await askAll({});
    expect(server).toMatchObject({ running: true, ready: true, problem: null });
    expect(check).toMatchObject({ status: 'pass' });
    expect(health).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });

  it('is not believed with another certificate, though it is for the same name', async () => {
    const { server, check, health } = await askAll(write(selfSigned('local')));
    const problem = expect.stringContaining('another certificate than GPD_TLS_CERT') as string;
    expect(server).toMatchObject({ running: false, ready: false, problem });
    expect(check).toMatchObject({ status: 'fail', detail: problem });
    expect(health).toMatchObject({ code: 1, stdout: '', stderr: problem });
  });
});
