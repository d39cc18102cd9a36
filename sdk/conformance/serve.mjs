#!/usr/bin/env node
// Starts a temporary gpd and the scripted stub for the conformance runners of all SDKs. Prints one line of JSON (see README.md),
// and ends when its standard input ends.
import { execFile, spawn } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startRuns } from './runs.mjs';
import { startStub } from './stub.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const GPD = join(ROOT, 'bin', 'gpd');
const KID = 'shop';
const ORIGIN = 'https://shop.example';
const AGENT = 'https://agent.example';
const run = promisify(execFile);

const scratch = mkdtempSync(join(tmpdir(), 'gpd-conformance-'));

/** Without the caller's GPD_* variables, which must not reach the server. */
const environment = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GPD_'))),
  GPD_DATA_DIR: join(scratch, 'gpd-data'),
  GPD_LOG_LEVEL: 'error',
};

/** @param {string[]} args */
async function gpd(...args) {
  const { stdout } = await run(process.execPath, [GPD, ...args, '--json'], {
    env: environment,
    cwd: scratch,
  });
  return JSON.parse(stdout);
}

/** @param {string} scope @param {string} [name] */
const createKey = async (scope, name = scope) => {
  const created = await gpd('apikeys', 'create', KID, '--scope', scope, '--name', name);
  return /** @type {{ id: string, key: string }} */ (created);
};

async function install() {
  await gpd('init', '--tenant', KID, '--origin', ORIGIN);
  await gpd('consent', 'purposes', 'set', KID, 'newsletter', '--title', 'Newsletter', '--ttl-days', '30');
  await gpd('consent', 'purposes', 'set', KID, 'support', '--title', 'Support', '--gpc', 'ignore');
  await gpd('consent', 'purposes', 'set', KID, 'offers', '--title', 'Offers', '--gpc', 'ask');
  const secret = await createKey('secret');
  const readOnly = await createKey('read-only');
  const publishable = await createKey('publishable');
  const operator = await createKey('operator');
  const revoked = await createKey('secret', 'revoked');
  await gpd('apikeys', 'revoke', revoked.id);
  return {
    secret: secret.key,
    readOnly: readOnly.key,
    publishable: publishable.key,
    operator: operator.key,
    revoked: revoked.key,
  };
}

/** Headers of an agent that gpd knows, signed for the host of the shop. */
async function signAsAgent() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { kty, crv, x } = publicKey.export({ format: 'jwk' });
  const keyid = createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url');
  const file = join(scratch, 'agent.jwks');
  writeFileSync(file, JSON.stringify({ keys: [{ kty, crv, x }] }));
  await gpd('agents', 'add', AGENT, '--jwks', file);
  const now = Math.floor(Date.now() / 1000);
  const components = '"@authority" "signature-agent";key="sig1"';
  const parameters = `(${components});created=${now};expires=${now + 72_000};keyid="${keyid}";tag="web-bot-auth"`;
  const base = `"@authority": shop.example\n"signature-agent";key="sig1": "${AGENT}"\n"@signature-params": ${parameters}`;
  return {
    agent: AGENT,
    agentSignature: `sig1=:${sign(null, Buffer.from(base), privateKey).toString('base64')}:`,
    agentSignatureInput: `sig1=${parameters}`,
    agentSignatureAgent: `sig1="${AGENT}"`,
  };
}

/** @returns {Promise<{ url: string, stop(): Promise<void> }>} */
async function serve() {
  const child = spawn(process.execPath, [GPD, 'serve', '--port', '0', '--json'], {
    env: environment,
    cwd: scratch,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([once(lines, 'line'), exited.then(() => null)]);
  if (!first) throw new Error('gpd serve ended before it listened');
  return {
    url: JSON.parse(first[0]).url,
    async stop() {
      // Killed without a drain, because its data is deleted anyway.
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Sends a bundle without signals: the verdict is `unknown`, nobody is identified, and there is a request id to query. @param {string} url */
async function ingest(url) {
  const plaintext = {
    v: 1,
    consent: { purposes: ['device-identification'], gpc: false, version: 1, issuedAt: Date.now() },
    signals: {},
  };
  const sealing = run(process.execPath, [GPD, 'seal', KID], { env: environment, cwd: scratch });
  sealing.child.stdin?.end(JSON.stringify(plaintext));
  const body = (await sealing).stdout;
  const headers = { 'content-type': 'application/json', origin: ORIGIN };
  const response = await fetch(new URL('/_fp/i/v1', url), { method: 'POST', headers, body });
  const answer = await response.json();
  if (response.status !== 200) throw new Error(`the ingest answered ${response.status} ${answer.reason}`);
  return answer.requestId;
}

/** @param {import('node:net').Server} server */
async function portOf(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
}

/** Addresses at which no gpd answers, each for another reason. @param {string} stubUrl */
async function startWrongAddresses(stubUrl) {
  const pem = readFileSync(new URL('self-signed.pem', import.meta.url));
  const tls = createTlsServer({ key: pem, cert: pem });
  const noHttp = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end('SSH-2.0-OpenSSH_9.6\r\n\r\n'));
  });
  const closed = createServer();
  const refusedPort = await portOf(closed);
  closed.close();
  return {
    variables: {
      refusedUrl: `http://127.0.0.1:${refusedPort}`,
      unknownUrl: 'http://gpd.invalid',
      plainUrl: stubUrl.replace('http:', 'https:'),
      selfSignedUrl: `https://127.0.0.1:${await portOf(tls)}`,
      noHttpUrl: `http://127.0.0.1:${await portOf(noHttp)}`,
    },
    close() {
      tls.close();
      noHttp.close();
    },
  };
}

async function main() {
  if (!existsSync(join(ROOT, 'dist', 'cli', 'main.js'))) {
    throw new Error('gpd is not built: run `npm run build` in the root of the repository');
  }
  const keys = await install();
  const agent = await signAsAgent();
  const server = await serve();
  try {
    const stub = await startStub();
    const headers = { authorization: `Bearer ${keys.secret}` };
    const vkey = (await (await fetch(new URL('/v1/ledger/vkey', server.url), { headers })).text()).trim();
    const requestId = await ingest(server.url);
    const otherAddresses = await startWrongAddresses(stub.url);
    const variables = { ...otherAddresses.variables, ...agent };
    const addresses = { url: server.url, stub: stub.url, kid: KID, keys, vkey, requestId, variables };
    const runs = await startRuns(addresses);
    process.stdout.write(`${JSON.stringify({ ...addresses, runs: runs.url })}\n`);
    process.stdin.resume();
    await Promise.race([once(process.stdin, 'end'), once(process, 'SIGTERM'), once(process, 'SIGINT')]);
    process.stdin.destroy();
    otherAddresses.close();
    runs.close();
    await stub.close();
  } finally {
    await server.stop();
  }
}

main()
  .catch((error) => {
    process.stderr.write(`serve.mjs: ${error.message}\n`);
    process.exitCode = 1;
  })
  .finally(() => {
    rmSync(scratch, { recursive: true, force: true });
    // A client under test that keeps a dead connection would keep this process alive, for which it waits.
    process.exit();
  });
