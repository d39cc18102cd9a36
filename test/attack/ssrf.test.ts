import { type AddressInfo, createServer } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { KID } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { expectCore, post } from '../support/expect.ts';
import { postJson } from '../support/http.ts';
import { signJws } from '../support/jws.ts';
import { startIdp } from '../support/oidc.ts';
import { startProcess } from '../support/process.ts';
import { createBundle } from '../support/seal.ts';
import { started } from '../support/started.ts';
import { expectNoneLogged } from './support/faults.ts';

/** gpd never connects to a stranger's address inside the perimeter: a listener there hears nothing. */

/** A port on every address of this machine, IPv4 and IPv6, that counts who connects. */
async function startBait() {
  let heard = 0;
  const server = createServer((socket) => {
    heard += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '::', resolve));
  const { port } = server.address() as AddressInfo;
  return { port, heard: () => heard, close: () => void server.close() };
}

const bait = started(startBait);
const idp = started(() => startIdp());
const gpd = started(() => {
  return startProcess({ settings: { ...idp.settings, GPD_RATE_PRIVACY: 'off' } });
});
expectNoneLogged(/"fault"/, () => gpd.logs());
afterEach(() => expect(bait.heard()).toBe(0));

it('directories that an operator adds by mistake are not looked for inside', async () => {
  for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '2130706433'])
    await gpd.cli(['agents', 'add', `https://${host}:${bait.port}`]);
});

it('webhooks whose targets lie inside are never called without --allow-private', async () => {
  const hosts = ['127.0.0.1', 'localhost', '[::ffff:7f00:1]', '0177.0.0.1'];
  for (const host of hosts) {
    const { stderr } = await gpd.cli(['webhooks', 'add', KID, `https://${host}:${bait.port}/hook`]);
    expect(stderr).toContain('without --allow-private nothing is sent');
  }
  expect(await gpd.cli(['webhooks', 'add', KID, `http://127.0.0.1:${bait.port}/`])).toMatchObject({
    code: 2,
  });
  await vi.waitFor(async () => {
    expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');
    const sql = 'SELECT failure FROM webhook_outbox WHERE failure IS NOT NULL';
    const rows = await execute(gpd.dataDir, sql);
    expect(rows.length).toBeGreaterThanOrEqual(hosts.length);
    for (const { failure } of rows) expect(failure).toMatch(/not public/);
  });
});

it('a token that says where its keys are is not followed there', async () => {
  for (const member of ['jku', 'x5u']) {
    const header = { alg: 'ES256', typ: 'at+jwt', kid: 'mine', [member]: `http://127.0.0.1:${bait.port}/` };
    const token = signJws(header, idp.claims(), idp.keys.ES256);
    const reply = await postJson(gpd.url, '/privacy/dsar', {}, { authorization: `Bearer ${token}` });
    expect(reply.status).toBe(401);
  }
});
