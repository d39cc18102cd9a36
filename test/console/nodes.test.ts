import { afterAll, beforeAll, expect, it } from 'vitest';
import { KID } from '../support/constants.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { type Balancer, startBalancer } from './support/balancer.ts';
import { type Console, signIn, startConsole, type Visitor } from './support/console.ts';
import { rows } from './support/data.ts';

/* On a machine with other work. */

/** Two nodes on one database, behind a balancer without sticky sessions. */

let balancer: Balancer;
let site: Console;
let second: Gpd;
let dora: Visitor;
let csrf = '';

beforeAll(async () => {
  balancer = await startBalancer();
  site = await startConsole({ base: balancer.url });
  await site.gpd.json(['webhooks', 'add', KID, 'http://127.0.0.1:9/x', '--allow-private']);
  second = await startGpd({ dataDir: site.gpd.dataDir, settings: site.settings });
  balancer.use([site.gpd.port, second.port]);
  dora = await signIn(site.url, 'dora');
  csrf = await dora.csrf();
});
afterAll(async () => {
  await Promise.all([site.stop(), second.stop(), balancer.close()]);
});

it('an export comes whole from either node, is in the audit log, and told to webhooks', async () => {
  const { requestId } = await site.decide('balanced');
  const form = { csrf, kind: 'request', id: requestId, unnamed: 'on' };
  for (let i = 1; i <= 4; i += 1) {
    const file = await dora.post('/console/subjects/export', form);
    expect(file.status).toBe(200);
    expect(file.text.slice(0, 2)).toBe('PK');
    expect(file.text).toContain('manifest.p7s');
    const exportRows = (await rows(site, 'audit_log')).filter(
      (row) => row['action'] === 'dsar.staff-exported',
    );
    expect(exportRows).toHaveLength(i);
  }
  // The node that knew the webhook from its start sends the event at least.
  const events = async () => (await rows(site, 'webhook_outbox')).map((row) => row['event']);
  await expect.poll(events).toContain('export.ready');
});

it('nobody else is given it: a reviewer by the role, a dpo of another tenant as somebody unknown', async () => {
  const { requestId } = await site.decide('theirs');
  for (const [account, status] of [
    ['ada', 403],
    ['olaf', 404],
  ] as const) {
    const other = await signIn(site.url, account);
    const form = { csrf: await other.csrf(), kind: 'request', id: requestId, unnamed: 'on' };
    expect((await other.post('/console/subjects/export', form)).status, account).toBe(status);
  }
});

it('a verification is answered by either node', async () => {
  for (let i = 0; i < 2; i += 1)
    expect((await dora.post('/console/ledger/verify', { csrf })).text).toContain('The ledger is whole');
});
