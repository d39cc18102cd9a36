import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addApiKey } from '../support/api-key.ts';
import { runGpd } from '../support/command.ts';
import { execute } from '../support/database.ts';
import { type Gpd, initGpd, startGpd } from '../support/server.ts';
import { createCosigner } from './cosigner.ts';

/** A log whose witnesses answer as they should not, and what it tells meanwhile. */

const good = createCosigner('good.example/w', randomBytes(32));
const wrongWitness = createCosigner('wrong.example/w', randomBytes(32));
const bodies: string[] = [];
/** The second witness answers with this status and text. */
let answer: (body: string) => readonly [number, string] = () => [500, ''];

interface WitnessStatus {
  readonly policy: number;
  readonly logs: readonly { readonly size: number }[];
}

const noteOf = (body: string): string => body.slice(body.indexOf('\n\n') + 2);
const textOf = (body: string): string => noteOf(body).slice(0, noteOf(body).lastIndexOf('\n\n') + 1);

const server = createServer((request, response) => {
  let body = '';
  request
    .setEncoding('utf8')
    .on('data', (chunk: string) => {
      body += chunk;
    })
    .on('end', () => {
      const isGood = request.url === '/good/add-checkpoint';
      if (!isGood) bodies.push(body);
      const [status, text] = isGood ? [200, good.cosign(textOf(body), 1_800_000_000)] : answer(body);
      response.writeHead(status).end(text);
    });
});

/** Takes webhooks. */
const alerts: string[] = [];
const receiver = createServer((request, response) => {
  request.on('data', (chunk: Buffer) => alerts.push(chunk.toString())).on('end', () => response.end());
});

let gpd: Gpd;
let key: string;
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { dataDir } = await initGpd([{ kid: 'acme', origins: ['https://shop.example'] }]);
  const witnesses = [
    `${good.vkey}@http://127.0.0.1:${port}/good`,
    `${wrongWitness.vkey}@http://127.0.0.1:${port}/wrong/`,
  ];
  const settings = { GPD_WITNESSES: witnesses.join(','), GPD_WITNESS_POLICY: '1' };
  gpd = await startGpd({ dataDir, settings, app: { intervals: { housekeeping: 50 } } });
  key = await addApiKey(gpd);
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  await gpd.json(['webhooks', 'add', 'acme', target, '--allow-private', '--event', 'log.fork']);
});
afterAll(async () => {
  await gpd.stop();
  server.close();
  receiver.close();
});

const checkpoint = async (): Promise<string> =>
  (await fetch(`${gpd.url}/v1/ledger/checkpoint`, { headers: { authorization: `Bearer ${key}` } })).text();
const cosigners = (note: string): string[] =>
  [...note.matchAll(/^\u2014 (\S+\.example\/w) /gm)].map(([, name]) => name ?? '');

async function doctorLine(): Promise<{ status: string; detail: string }> {
  const { stdout } = await gpd.cli(['doctor', '--json']);
  const { checks } = JSON.parse(stdout) as { checks: { id: string; status: string; detail: string }[] };
  return checks.find(({ id }) => id === 'log.witnesses') ?? { status: '', detail: '' };
}

it('one of two is enough where the policy says so, and doctor names the other', async () => {
  await expect.poll(async () => cosigners(await checkpoint())).toEqual(['good.example/w']);
  await expect.poll(doctorLine).toMatchObject({
    status: 'warn',
    detail: expect.stringContaining('refused wrong.example/w') as string,
  });
});

it.each<[string, typeof answer, string]>([
  ['a cosignature of another key', (body) => [200, good.cosign(textOf(body), 1_800_000_000)], 'refused'],
  [
    'a cosignature over something else',
    () => [200, wrongWitness.cosign('x\n1\ny\n', 1_800_000_000)],
    'refused',
  ],
  ['a redirect', () => [302, ''], 'refused'],
  ['a size that is none', () => [409, '1e3\n'], 'refused'],
  ['another size each time', (body) => [409, body.startsWith('old 0') ? '1\n' : '0\n'], 'refused'],
  ['a longer log than ours', () => [409, '1000\n'], 'fork'],
  ['another tree', () => [422, ''], 'fork'],
])('takes nothing from %s', async (_what, next, result) => {
  answer = next;
  const before = bodies.length;
  await expect.poll(() => bodies.length).toBeGreaterThan(before + 3);
  await expect.poll(async () => (await doctorLine()).detail).toContain(`${result} wrong.example/w`);
  expect(cosigners(await checkpoint())).toEqual(['good.example/w']);
  if (result !== 'fork') return;
  await expect.poll(() => alerts.join('')).toContain('"type":"log.fork"');
  expect(JSON.parse(alerts[0] ?? '{}')).toMatchObject({ data: { witness: 'wrong.example/w' } });
  expect(gpd.logs()).toContain('"event":"log.fork","tenant":"acme"');
});

it('goes on from the size that the witness answers, with a proof', async () => {
  answer = (body) =>
    body.startsWith('old 1\n') ? [200, wrongWitness.cosign(textOf(body), 1_800_000_000)] : [409, '1\n'];
  await expect.poll(async () => cosigners(await checkpoint())).toEqual(['good.example/w', 'wrong.example/w']);
  await expect.poll(async () => (await doctorLine()).status).toBe('pass');
  expect(bodies.at(-1)).toMatch(/^old 1\n[\w+/=\n]*\n\S+\/ledger\/acme\n/);
  const { policy, logs } = await gpd.json<WitnessStatus>(['witness', 'status']);
  const size = logs[0]?.size;
  expect(policy).toBe(1);
  expect(logs).toMatchObject([
    {
      tenant: 'acme',
      witnesses: [
        { name: 'good.example/w', size, cosignedAt: '2027-01-15T08:00:00.000Z' },
        { name: 'wrong.example/w', size },
      ],
    },
  ]);
});

it('tells no line that somebody wrote into the database', async () => {
  const forged = createCosigner('forged.example/w', randomBytes(32)).cosign('x\n', 1);
  await execute(gpd.dataDir, `UPDATE checkpoints SET cosignatures = '${forged}' || cosignatures`);
  expect(cosigners(await checkpoint())).toEqual(['good.example/w', 'wrong.example/w']);
});

it.each([
  ['nonsense', '1', /GPD_WITNESSES .*VKEY@URL/],
  [`${good.vkey}@ftp://x.example`, '1', /GPD_WITNESSES .*VKEY@URL/],
  [`${good.vkey.replace('good', 'bad')}@https://x.example`, '1', /GPD_WITNESSES: .*not the key/],
  [`${good.vkey}@https://x.example,${good.vkey}@https://y.example`, '1', /GPD_WITNESSES: .*twice/],
  [`${good.vkey}@https://x.example`, '2', /GPD_WITNESS_POLICY: 2 of 1/],
  [`${good.vkey}@https://x.example`, '0', /GPD_WITNESS_POLICY /],
])('gpd serve refuses the witnesses %s by the policy %s', async (witnesses, policy, message) => {
  const env = { GPD_WITNESSES: witnesses, GPD_WITNESS_POLICY: policy };
  const ran = await runGpd(['serve', '--port', '0'], { env: { GPD_DATA_DIR: gpd.dataDir, ...env } });
  expect(ran.code).toBe(78);
  expect(ran.stderr).toMatch(message);
});
