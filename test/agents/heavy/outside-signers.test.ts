import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { addApiKey } from '../../support/api-key.ts';
import { tempDir } from '../../support/command.ts';
import { ORIGIN } from '../../support/constants.ts';
import { expectCore, post, SEEN_WITHIN } from '../../support/expect.ts';
import { ask } from '../../support/http.ts';
import { createBundle } from '../../support/seal.ts';
import { startGpd } from '../../support/server.ts';
import { started } from '../../support/started.ts';
import { describeWithTool } from '../../support/tools.ts';
import { AGENT_ORIGIN } from '../support/agent.ts';

/**
 * Signatures by programs of others, from npm and PyPI, at the door and at ingest. Both write `Signature-Agent` as the drafts before
 * -01 did: a bare string.
 */

const folder = tempDir('signers');
const python = join(folder, 'venv', 'bin', 'python');
const { d = '', x = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
const JWK = { kty: 'OKP', crv: 'Ed25519', x };

const NPM = `
import { signatureHeaders } from 'web-bot-auth';
import { signerFromJWK } from 'web-bot-auth/crypto';
const [method, url, agent, key] = process.argv.slice(2);
const headers = { 'Signature-Agent': agent };
const times = { created: new Date(), expires: new Date(Date.now() + 60_000) };
const signer = await signerFromJWK(JSON.parse(key));
const signature = await signatureHeaders(new Request(url, { method, headers }), signer, { ...times, key: 'sig1' });
console.log(JSON.stringify({ ...headers, ...signature }));
`;
const PYPI = `
import json, sys
from regent_httpsig import EgressSigner
method, url, agent, key = sys.argv[1:]
signer = EgressSigner(seed=json.loads(key)["d"], signature_agent=agent.strip('"'))
print(json.dumps(signer.sign(method, url)))
`;

function run(command: string, ...words: readonly string[]): string {
  const ran = spawnSync(command, words, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, TZ: 'UTC' },
  });
  if (ran.status !== 0) throw new Error(`${command}: ${ran.stderr || String(ran.error)}`);
  return ran.stdout;
}

/** Installs the signers. @returns why one cannot be had, or null */
function installSigners(): string | null {
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  writeFileSync(join(folder, 'sign.mjs'), NPM);
  writeFileSync(join(folder, 'sign.py'), PYPI);
  try {
    run('npm', 'install', '--no-audit', '--no-fund', '--silent', 'web-bot-auth@0.1.3');
    run('python3', '-m', 'venv', 'venv');
    run(python, '-m', 'pip', 'install', '--quiet', 'regent-httpsig==0.7.3');
    return null;
  } catch (error) {
    return `npm and Python with access to their registries are needed: ${(error as Error).message.slice(0, 200)}`;
  }
}

const SIGNERS = [
  ['npm web-bot-auth, a string', 'node', 'sign.mjs', `"${AGENT_ORIGIN}"`],
  ['PyPI regent-httpsig, a string', python, 'sign.py', `"${AGENT_ORIGIN}"`],
] as const;

describeWithTool(
  'signers of others',
  installSigners(),
  () => {
    const gpd = started(() => startGpd({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } }));

    const sign = (by: readonly string[], method: string, url: string): Record<string, string> => {
      const [, command = '', file = '', agent = ''] = by;
      return JSON.parse(run(command, file, method, url, agent, JSON.stringify({ ...JWK, d }))) as Record<
        string,
        string
      >;
    };

    it.each(SIGNERS)('%s: verified at the door and at ingest, and not for another host', async (...by) => {
      const file = join(folder, 'keys.json');
      writeFileSync(file, JSON.stringify({ keys: [JWK] }));
      await gpd.json(['agents', 'add', AGENT_ORIGIN, '--jwks', file]);
      const shop = new URL(ORIGIN).host;
      const check = (headers: Record<string, string>, host = shop) =>
        ask(gpd.url, '/v1/agents/check', {
          headers: {
            'x-forwarded-for': '203.0.113.9',
            'x-forwarded-proto': 'https',
            'x-forwarded-host': host,
            'x-forwarded-uri': '/lamps',
            ...headers,
          },
        });
      const door = () => sign(by, 'GET', `https://${shop}/lamps`);
      await vi.waitFor(
        async () => expect((await check(door())).headers['gpd-agent-status']).toBe('verified'),
        SEEN_WITHIN,
      );
      expect((await check(door())).headers['gpd-agent']).toBe(AGENT_ORIGIN);
      const elsewhere = sign(by, 'GET', 'https://other.example/lamps');
      expect((await check(elsewhere)).headers['gpd-agent-status']).toBe('invalid');

      const ingest = `${gpd.url}/_fp/i/v1`;
      const answer = await post(gpd.url, createBundle(gpd.targets[0]!), sign(by, 'POST', ingest));
      expect(expectCore(answer, 'ok')).toMatchObject({
        class: 'declared_agent',
        declaredAgentId: AGENT_ORIGIN,
      });
    });

    it('npm web-bot-auth covers a dictionary as a whole, which draft -01 does not accept: the reason says so', async () => {
      const secret = await addApiKey(gpd, 'secret');
      const by = ['', 'node', 'sign.mjs', `sig1="${AGENT_ORIGIN}"`];
      const url = `https://${new URL(ORIGIN).host}/lamps`;
      const headers = sign(by, 'GET', url);
      const answer = await ask(gpd.url, '/v1/agents/verify', {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ method: 'GET', url, headers }),
      });
      expect(answer.json()).toMatchObject({
        ...{ status: 'unverified', agent: null },
        reason: 'signature-agent-not-covered',
      });
    });
  },
  { optional: true },
);
