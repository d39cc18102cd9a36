import { type AddressInfo, createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createAgent, signedHeaders } from '../agents/support/agent.ts';
import { KID } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { expectCore, post } from '../support/expect.ts';
import { postJson } from '../support/http.ts';
import { signJws } from '../support/jws.ts';
import { type Idp, startIdp } from '../support/oidc.ts';
import { type GpdProcess, startProcess } from '../support/process.ts';
import { createBundle } from '../support/seal.ts';

/** gpd never connects to a stranger's address inside the perimeter: a listener there hears nothing. */

let bait: Server;
let port = 0;
let heard = 0;
let idp: Idp;
let gpd: GpdProcess;
beforeAll(async () => {
  bait = createServer((socket) => {
    heard += 1;
    socket.destroy();
  });
  // Every address of this machine, IPv4 and IPv6.
  await new Promise<void>((resolve) => bait.listen(0, '::', resolve));
  ({ port } = bait.address() as AddressInfo);
  idp = await startIdp();
  const settings = {
    GPD_WBA_OPEN_DISCOVERY: 'true',
    GPD_AUTHORITIES: 'gpd.example',
    GPD_RATE_PRIVACY: 'off',
  };
  gpd = await startProcess({ settings: { ...idp.settings, ...settings } });
});
afterAll(async () => {
  expect(heard).toBe(0);
  expect(gpd.logs()).not.toContain('"fault"');
  await gpd.stop();
  await idp.stop();
  bait.close();
});

/** This machine and its surroundings, in the spellings that URL parsers and resolvers know and a header can hold. */
const HOSTS = [
  ...'127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 017700000001 127.0.0.1. 0.0.0.0 0'.split(
    ' ',
  ),
  ...'%31%32%37.0.0.1 [::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1]'.split(
    ' ',
  ),
  ...'[64:ff9b::7f00:1] [2002:7f00:1::] localhost LOCALHOST localhost. ip6-localhost a@127.0.0.1'.split(' '),
  ...'169.254.169.254 10.0.0.1 [fe80::1] [fd00::1]'.split(' '),
  hostname(),
];

it('directories of agents that a signature names are not looked for inside, with open discovery', async () => {
  for (const host of HOSTS) {
    const agent = { ...createAgent(), origin: `https://${host}:${port}` };
    const now = Math.floor(Date.now() / 1000);
    const params = { created: String(now), expires: String(now + 60) };
    const headers = signedHeaders(agent, { host: 'gpd.example', scheme: 'https', params });
    expectCore(await post(gpd.url, createBundle(gpd.targets[0]!), headers), 'ok');
  }
  await new Promise((resolve) => setTimeout(resolve, 2000));
  expect(heard).toBe(0);
});

it('nor are those that an operator adds by mistake', async () => {
  for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '2130706433'])
    await gpd.cli(['agents', 'add', `https://${host}:${port}`]);
  expect(heard).toBe(0);
});

it('webhooks whose targets lie inside are never called without --allow-private', async () => {
  const hosts = ['127.0.0.1', 'localhost', '[::ffff:7f00:1]', '0177.0.0.1'];
  for (const host of hosts) {
    const { stderr } = await gpd.cli(['webhooks', 'add', KID, `https://${host}:${port}/hook`]);
    expect(stderr).toContain('without --allow-private nothing is sent');
  }
  expect(await gpd.cli(['webhooks', 'add', KID, `http://127.0.0.1:${port}/`])).toMatchObject({ code: 2 });
  await vi.waitFor(async () => {
    expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');
    const sql = 'SELECT failure FROM webhook_outbox WHERE failure IS NOT NULL';
    const rows = await execute(gpd.dataDir, sql);
    expect(rows.length).toBeGreaterThanOrEqual(hosts.length);
    for (const { failure } of rows) expect(failure).toMatch(/not public/);
  });
  expect(heard).toBe(0);
});

it('a token that says where its keys are is not followed there', async () => {
  for (const member of ['jku', 'x5u']) {
    const header = { alg: 'ES256', typ: 'at+jwt', kid: 'mine', [member]: `http://127.0.0.1:${port}/` };
    const token = signJws(header, idp.claims(), idp.keys.ES256);
    const reply = await postJson(gpd.url, '/privacy/dsar', {}, { authorization: `Bearer ${token}` });
    expect(reply.status).toBe(401);
  }
  expect(heard).toBe(0);
});
