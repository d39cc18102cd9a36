import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { tempDir } from '../support/command.ts';
import { NOW } from '../support/make.ts';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import { AGENT_ORIGIN, createAgent, quoted, signedHeaders } from './support/agent.ts';

/** `gpd agents replay`: a recorded day by another policy. */

const gpd = started(() => startGpd());
const agent = createAgent();
const folder = tempDir('replay');

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const signed = (params: Readonly<Record<string, string>> = {}) =>
  signedHeaders(agent, { method: 'GET', host: 'shop.example', target: '/', params });
const line = (path: string, over: object = {}): string =>
  JSON.stringify({ at: NOW, method: 'GET', url: `https://shop.example${path}`, headers: {}, ...over });

const POLICY = file(
  'policy.json',
  JSON.stringify([
    { agent: AGENT_ORIGIN, path: '/', action: 'allow' },
    { agent: '*', status: 'invalid', path: '/', action: 'deny' },
    { agent: '*', path: '/api', action: 'require' },
    { agent: '*', path: '/slow', action: 'rate', rate: '2/60' },
  ]),
);

beforeAll(async () => {
  const jwks = file('jwks.json', JSON.stringify({ keys: [agent.jwk] }));
  await gpd.json(['agents', 'add', AGENT_ORIGIN, '--jwks', jwks]);
});

const replay = (lines: readonly string[]): Promise<Record<string, unknown>> =>
  gpd.json(['agents', 'replay', file('day.ndjson', lines.join('\n')), '--policy', POLICY]);

describe('gpd agents replay', () => {
  it('says what would change, per agent and path, by the clock of each line', async () => {
    const result = await replay([
      line('/', { headers: signed() }),
      line('/', { headers: signed(), at: new Date(NOW + 400_000).toISOString() }),
      line('/api/orders?x=1'),
      line('/api/carts', { answered: 401 }),
      line('/api', { headers: signed(), answered: 'deny' }),
      line('/api/x', { answered: 'require' }),
      ...Array.from({ length: 4 }, () => line('/slow')),
      line('/slow', { at: NOW + 60_000 }),
      line('/free'),
    ]);
    expect(result).toEqual({
      total: 12,
      changed: 5,
      changes: [
        { agent: null, status: 'none', path: '/slow', before: 204, after: 429, requests: 2 },
        { agent: null, status: 'invalid', path: '/', before: 204, after: 403, requests: 1 },
        { agent: null, status: 'none', path: '/api', before: 204, after: 401, requests: 1 },
        { agent: AGENT_ORIGIN, status: 'verified', path: '/api', before: 403, after: 204, requests: 1 },
      ],
    });
  });

  it('takes a nonce once, in memory alone', async () => {
    const lines = Array.from({ length: 3 }, () => line('/', { headers: signed({ nonce: quoted('once') }) }));
    for (let run = 0; run < 2; run += 1)
      expect(await replay(lines)).toMatchObject({ total: 3, changed: 2, changes: [{ status: 'invalid' }] });
  });

  it('prints a table, and a sentence when nothing changes', async () => {
    const day = file('table.ndjson', `${line('/api')}\n\n${line('/')}\n`);
    const { stdout } = await gpd.cli(['agents', 'replay', day, '--policy', POLICY]);
    expect(stdout).toMatch(/AGENT +PATH +BEFORE +AFTER +REQUESTS\nnone +\/api +204 +401 +1\n/);
    expect(stdout).toContain('2 requests, 1 would be answered otherwise');
    const free = file('free.ndjson', line('/'));
    expect((await gpd.cli(['agents', 'replay', free, '--policy', POLICY])).stdout).toBe(
      '1 requests, 0 would be answered otherwise\n',
    );
  });

  it.each([
    ['a line that is no JSON', `${line('/')}\nx`, '[]', /line 2: /],
    ['a line without a time', line('/').replace('"at"', '"when"'), '[]', /line 1: at: /],
    [
      'a policy that is none',
      line('/'),
      '[{"agent":"*","path":"/","action":"no"}]',
      /agents\.policy\.0\.action/,
    ],
  ])('refuses %s, exit 2', async (_name, day, policy, message) => {
    const args = [file('bad.ndjson', day), '--policy', file('bad.json', policy)];
    const ran = await gpd.cli(['agents', 'replay', ...args]);
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringMatching(message) as string });
  });
});
