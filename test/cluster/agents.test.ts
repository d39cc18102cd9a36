import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { AGENT_ORIGIN, createAgent, quoted, signedHeaders } from '../agents/support/agent.ts';
import { tempDir } from '../support/command.ts';
import { ORIGIN } from '../support/constants.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { missingPostgres } from '../support/postgres.ts';
import { describeWithTool } from '../support/tools.ts';
import { createCaller, inParallel } from './support/call.ts';
import { startCluster } from './support/cluster.ts';

/** Contract-2 section 17: a nonce is claimed over all nodes. */

describeWithTool('agents at several doors', await missingPostgres(), () => {
  it('are let in once by a nonce, at whichever node it comes again', async () => {
    const cluster = await startCluster();
    try {
      const agent = createAgent();
      const file = join(tempDir('agents'), 'jwks.json');
      writeFileSync(file, JSON.stringify({ keys: [agent.jwk] }));
      await cluster.json(['agents', 'add', AGENT_ORIGIN, '--jwks', file]);
      const call = createCaller();
      const signed = (nonce: string) => {
        const now = Math.floor(Date.now() / 1000);
        const params = { created: String(now), expires: String(now + 300), nonce: quoted(nonce) };
        const { host, ...headers } = signedHeaders(agent, { host: new URL(ORIGIN).host, params });
        const site = { 'x-forwarded-host': host ?? '', 'x-forwarded-proto': 'https' };
        return { path: '/v1/agents/check', headers: { ...headers, ...site } };
      };
      const statusAt = async (url: string, nonce: string, headers = signed(nonce)): Promise<unknown> =>
        (await call(url, headers)).headers['gpd-agent-status'];
      for (const { url } of cluster.nodes)
        await vi.waitFor(
          async () => expect(await statusAt(url, `${url} ${Date.now()}`)).toBe('verified'),
          SEEN_WITHIN,
        );
      const urls = cluster.nodes.map(({ url }) => url);
      expect(urls.length).toBeGreaterThan(1);
      for (let i = 0; i < 5; i += 1) {
        const request = signed(`again-${i}`);
        const statuses = await inParallel(20, 20, (n) => statusAt(urls[n % urls.length]!, '', request));
        expect(statuses.filter((one) => one === 'verified')).toHaveLength(1);
        for (const url of urls) expect(await statusAt(url, '', request)).toBe('invalid');
      }
      call.close();
    } finally {
      await cluster.stop();
    }
  });
});
