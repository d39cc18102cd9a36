import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { addApiKey } from '../support/api-key.ts';
import { tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { startProcess } from '../support/process.ts';
import { initGpd } from '../support/server.ts';

/**
 * Schemathesis (PyPI) reads /openapi.json and calls every route in ways that keep to it and in ways that do not. NOT RUN,
 * by name, where Python or pip cannot do their part. SCHEMATHESIS names one that is installed.
 */

const VERSION = '4.32.5';
/** Fixed, so that a run can be repeated; examples a route and phase. */
const SEED = process.env['TEST_SEED'] ?? '20261120';
const FULL = process.env['ATTACK_SIZE'] === 'full';
const EXAMPLES = FULL ? '500' : '15';
const PIP_SECONDS = 90;

function notRun(reason: string): never {
  process.stderr.write(`NOT RUN: schemathesis: ${reason}\n`);
  process.exit(process.env['REQUIRE_SCHEMATHESIS'] === '1' ? 1 : 0);
}

function findSchemathesis(): string {
  const named = process.env['SCHEMATHESIS'];
  if (named) return existsSync(named) ? named : notRun(`${named} is not there`);
  const venv = tempDir('venv');
  const venvCreation = spawnSync('python3', ['-m', 'venv', venv]);
  if (venvCreation.status !== 0)
    notRun('python3 cannot make a virtual environment (apt-get install python3-venv)');
  const pip = [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--retries',
    '0',
    '--timeout',
    '10',
    `schemathesis==${VERSION}`,
  ];
  const installed = spawnSync(join(venv, 'bin/python'), pip, { timeout: PIP_SECONDS * 1000 });
  if (installed.status !== 0) notRun('pip cannot reach PyPI, or not in time');
  return join(venv, 'bin/schemathesis');
}

const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'unsupported_method',
];

/** 503 is the contract's answer to a minSeq that the log does not reach. */
const SETTINGS = `[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "503"]
`;

const SERVED = { GPD_RATE_PRIVACY: 'off', GPD_RATE_CONSENT: 'off', GPD_RATE_CONSENT_CLIENT: 'off' };

const program = findSchemathesis();
const { dataDir } = await initGpd([{ kid: KID, origins: [ORIGIN] }]);
const gpd = await startProcess({ dataDir, settings: SERVED });
const cwd = tempDir('schemathesis');
writeFileSync(join(cwd, 'schemathesis.toml'), SETTINGS);
const scopes = ['secret', 'operator'];
const keys = await Promise.all(scopes.map((scope) => addApiKey(gpd, scope)));
// A running server sees a new key of the command line within five seconds.
await new Promise((resolve) => setTimeout(resolve, 5000));

/**
 * @returns true if it found nothing; the output is printed in one piece, because both scopes run at the
 * same time
 */
async function ask(key: string): Promise<boolean> {
  const options = [
    '--max-examples',
    EXAMPLES,
    '--seed',
    SEED,
    // Two threads that parse Python at once: "AST constructor recursion depth mismatch", seen with CPython 3.11.7.
    '--workers',
    '1',
    '--checks',
    CHECKS.join(','),
  ];
  const credential = ['--header', `Authorization: Bearer ${key}`];
  const args = ['run', `${gpd.url}/openapi.json`, '--no-color', '--continue-on-failure'].concat(
    credential,
    options,
  );
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd });
  const outputs = [text(child.stdout), text(child.stderr)];
  const [code] = (await once(child, 'close')) as [number | null];
  for (const words of await Promise.all(outputs)) process.stdout.write(words);
  return code === 0;
}

let failed = (await Promise.all(keys.map(ask))).includes(false);
if (gpd.logs().includes('"fault"')) {
  process.stderr.write(gpd.logs());
  failed = true;
}
await gpd.stop();
process.exitCode = failed ? 1 : 0;
