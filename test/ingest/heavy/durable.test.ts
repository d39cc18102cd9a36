import { describe, expect, it, vi } from 'vitest';
import { decisionResponseSchema } from '../../../src/schema/responses.ts';
import { addApiKey } from '../../support/api-key.ts';
import { execute, lockDatabase } from '../../support/database.ts';
import { expectCore, post, SEEN_WITHIN } from '../../support/expect.ts';
import { ask } from '../../support/http.ts';
import { startProcess } from '../../support/process.ts';
import { desktopChrome } from '../../support/samples.ts';
import { createBundle, makePlaintext, seal } from '../../support/seal.ts';

describe.concurrent('durable before the 200', () => {
  it('survives kill -9: the decision is found, the bundle is a replay, the device is known', async () => {
    const gpd = await startProcess();
    const key = await addApiKey(gpd);
    const acme = gpd.targets[0]!;
    const signals = desktopChrome();
    const bundles = Array.from({ length: 20 }, () => createBundle(acme, { signals }));
    const answers = await Promise.all(bundles.map((bundle) => post(gpd.url, bundle)));
    await gpd.kill9();

    const again = await startProcess({ dataDir: gpd.dataDir });
    for (const answer of answers) {
      const { requestId, visitorId } = expectCore(answer, 'ok');
      const reply = await ask(again.url, `/v1/decisions/${requestId}`, {
        headers: { authorization: `Bearer ${key}` },
      });
      expect(reply.status).toBe(200);
      expect(decisionResponseSchema.parse(reply.json())).toMatchObject({ requestId, visitorId });
    }
    for (const bundle of bundles) expectCore(await post(again.url, bundle), 'replay');
    expect(expectCore(await post(again.url, createBundle(acme, { signals })), 'ok').confidence).toBe(0.99);
    await again.stop();
  });

  it('kills in the middle of traffic leave whole records only', async () => {
    const gpd = await startProcess();
    const acme = gpd.targets[0]!;
    const nonces = new Map<string, number>();
    const sending = Array.from({ length: 300 }, async () => {
      const plaintext = makePlaintext();
      try {
        const { status } = await post(gpd.url, seal(acme, plaintext));
        nonces.set(JSON.stringify(plaintext), status);
      } catch {
        nonces.set(JSON.stringify(plaintext), 0);
      }
    });
    await vi.waitFor(() => expect(nonces.size).toBeGreaterThan(20), { timeout: 10_000, interval: 1 });
    await gpd.kill9();
    await Promise.all(sending);
    const again = await startProcess({ dataDir: gpd.dataDir });
    const [count] = await execute(
      gpd.dataDir,
      `SELECT (SELECT count(*) FROM nonces) AS nonces, (SELECT count(*) FROM decisions) AS decisions,
        (SELECT count(*) FROM sightings) AS sightings, (SELECT count(*) FROM visitor_index) AS indexed`,
    );
    const storedCount = Number(count?.['nonces']);
    expect(count).toEqual({
      nonces: storedCount,
      decisions: storedCount,
      sightings: storedCount,
      indexed: storedCount,
    });
    const accepted = [...nonces].filter(([, status]) => status === 200);
    expect(storedCount).toBeGreaterThanOrEqual(accepted.length);
    for (const [plaintext] of accepted.slice(0, 30)) {
      expectCore(await post(again.url, seal(acme, plaintext)), 'replay');
    }
    await again.stop();
  });
});

describe.concurrent('a database that another program has locked', () => {
  it('answers 503 with Retry-After, writes nothing and takes the same bundle afterwards', async () => {
    const gpd = await startProcess();
    const bundle = createBundle(gpd.targets[0]!);
    const unlock = await lockDatabase(gpd.dataDir);
    const reply = await post(gpd.url, bundle);
    expect(reply.status).toBe(503);
    expect(reply.json()).toMatchObject({ error: 'unavailable' });
    expect(reply.headers['retry-after']).toMatch(/^\d+$/);
    await unlock();
    await vi.waitFor(async () => expectCore(await post(gpd.url, bundle), 'ok'), SEEN_WITHIN);
    await gpd.stop();
  });
});
