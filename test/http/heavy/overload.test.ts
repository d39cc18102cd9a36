import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_UNDER_WAY } from '../../../src/http/limiter.ts';
import { lockDatabase } from '../../support/database.ts';
import { expectCore, expectError, post } from '../../support/expect.ts';
import type { Reply } from '../../support/http.ts';
import { ask } from '../../support/http.ts';
import { type GpdProcess, startProcess } from '../../support/process.ts';
import { createBundle } from '../../support/seal.ts';

const REQUESTS = MAX_UNDER_WAY + 800;

let gpd: GpdProcess;
beforeAll(async () => {
  // One client has fewer connections: a proxy brings those of many.
  gpd = await startProcess({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } });
});
afterAll(() => gpd.stop());

/** Refused before the core: it was not opened, and there is no cookie. */
const refusedEarly = ({ status, headers }: Reply): boolean => status === 503 && !headers['set-cookie'];

describe('more bundles than places', () => {
  it('are refused with Retry-After while those before them wait; all others are answered, and nothing lasts', async () => {
    const unlock = await lockDatabase(gpd.dataDir);
    let early: (reply: Reply) => void = () => {};
    const firstRefused = new Promise<Reply>((resolve) => {
      early = resolve;
    });
    const bundles = Array.from({ length: REQUESTS }, () => createBundle(gpd.targets[0]!));
    const answers = Promise.all(
      bundles.map(async (bundle, i) => {
        const client = { 'x-forwarded-for': `198.51.${Math.floor(i / 250)}.${1 + (i % 250)}` };
        const reply = await post(gpd.url, bundle, client);
        if (refusedEarly(reply)) early(reply);
        return reply;
      }),
    );
    const refused = await firstRefused;
    expectError(refused, 'unavailable');
    expect(refused.headers['retry-after']).toBe('1');
    expect((await ask(gpd.url, '/healthz')).status).toBe(200);
    await unlock();

    const replies = await answers;
    const statuses = new Set(replies.map(({ status }) => status));
    expect(statuses).toEqual(new Set([200, 503]));
    const refusedIndex = replies.findIndex(refusedEarly);
    expect(replies.filter(({ status }) => status === 200).length).toBeGreaterThan(MAX_UNDER_WAY / 2);
    // The places are free again, and the nonce of what was refused is unclaimed.
    expectCore(await post(gpd.url, bundles[refusedIndex]), 'ok');
  });
});
