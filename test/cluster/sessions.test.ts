import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { signIn } from '../console/support/console.ts';
import { tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { INGEST } from '../support/expect.ts';
import { type Idp, startIdp } from '../support/oidc.ts';
import { missingPostgres } from '../support/postgres.ts';
import { browserHeaders } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { describeWithTool } from '../support/tools.ts';
import { createCaller } from './support/call.ts';
import { type Cluster, startCluster } from './support/cluster.ts';

/** Staff and subjects whose every request is answered by another node. */

describeWithTool('sessions over nodes', await missingPostgres(), () => {
  let cluster: Cluster;
  let idp: Idp;
  const call = createCaller();
  beforeAll(async () => {
    const secret = randomBytes(24).toString('base64url');
    const file = join(tempDir('secret'), 'client-secret');
    writeFileSync(file, `${secret}\n`);
    cluster = await startCluster({
      nodes: 3,
      async settings(url) {
        const redirectUri = `${url}/console/callback`;
        idp = await startIdp({
          accounts: { ada: { gpd_role: ['reviewer', 'dpo'], gpd_tenant: KID, name: 'Ada Lovelace' } },
          clients: [{ id: 'console', secret, redirectUri }],
        });
        return {
          ...idp.settings,
          GPD_CONSOLE_CLIENT_ID: 'console',
          GPD_CONSOLE_CLIENT_SECRET_FILE: file,
          GPD_RATE_PRIVACY: 'off',
        };
      },
    });
    return async () => {
      await cluster.stop();
      await idp.stop();
    };
  });

  it('signs staff in, though each step of it reaches another node', async () => {
    const staff = await signIn(cluster.url, 'ada', '/console/queue');
    for (let i = 0; i < 6; i += 1) {
      const page = await staff.get('/console/queue');
      expect(page.status).toBe(200);
      expect(page.text).toContain('Ada Lovelace');
    }
    // A form's token of one node is taken by the next, and the end of a session ends it on all.
    const cookie = [...staff.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const out = await staff.post('/console/logout', { csrf: await staff.csrf() });
    expect(out.status).toBeLessThan(400);
    for (const { url } of cluster.nodes) {
      const page = await call(url, { path: '/console/queue', headers: { cookie } });
      expect([page.status, page.headers.location]).toEqual([
        303,
        expect.stringMatching(/^\/console\/login/) as string,
      ]);
    }
  });

  it('a transparency token of one node is honoured by the others, and what was forgotten is forgotten on all', async () => {
    const [first, second, third] = cluster.nodes;
    const headers = { ...browserHeaders(), origin: ORIGIN };
    const ingested = await call(first!.url, { path: INGEST, headers, body: createBundle(cluster.target) });
    const { transparencyToken: token, requestId } = ingested.json() as Record<string, string>;
    const [cookie = ''] = ingested.headers['set-cookie']?.[0]?.split(';') ?? [];
    const forgotten = await call(second!.url, {
      path: '/me',
      headers: { origin: ORIGIN, cookie },
      body: { token, action: 'forget' },
    });
    expect(forgotten.status).toBe(200);
    expect(forgotten.json()).toMatchObject({ forgotten: true, shared: false });
    const decision = await call(third!.url, {
      path: `/v1/decisions/${requestId}`,
      headers: { authorization: `Bearer ${cluster.keys.secret}` },
    });
    expect(decision.status).toBe(404);
  });

  it('a contest filed on one node is reviewed on another, once', async () => {
    const [first, second, third] = cluster.nodes;
    const body = createBundle(cluster.target);
    const ingested = await call(first!.url, { path: INGEST, headers: browserHeaders(), body });
    const { requestId, visitorId } = ingested.json() as { requestId: string; visitorId: string };
    const subject = await idp.token({
      gpd_role: 'subject',
      gpd_tenant: KID,
      gpd_visitor: visitorId,
      sub: 's-1',
    });
    const filings = await Promise.all(
      cluster.nodes.map(({ url }) =>
        call(url, {
          path: '/privacy/contest',
          headers: { authorization: `Bearer ${subject}` },
          body: { requestId },
        }),
      ),
    );
    expect(filings.map(({ status }) => status)).toEqual(cluster.nodes.map(() => 202));
    const ids = new Set(filings.map((reply) => (reply.json() as { contestId: string }).contestId));
    expect(ids.size).toBe(1);
    const [contestId] = ids;
    const reviewer = await idp.token({ gpd_role: 'reviewer', gpd_tenant: KID, sub: 'r-1' });
    const resolve = (url: string, outcome: string) =>
      call(url, {
        path: '/privacy/contest/resolve',
        headers: { authorization: `Bearer ${reviewer}` },
        body: { contestId, outcome, reason: 'A person looked at it, and decided so.' },
      });
    const outcomes = await Promise.all([resolve(second!.url, 'overturned'), resolve(third!.url, 'upheld')]);
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set([200, 409]));
  });
});
