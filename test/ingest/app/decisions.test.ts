import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { decisionResponseSchema, heldDecisionSchema } from '../../../src/schema/responses.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { expectCore, expectError, post, SEEN_WITHIN } from '../../support/expect.ts';
import { ask, type Reply } from '../../support/http.ts';
import { headlessChrome } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import { type Gpd, startGpd } from '../../support/server.ts';

type Scope = 'publishable' | 'secret' | 'read-only' | 'operator';

interface MadeKey {
  readonly id: string;
  readonly scope: Scope;
  readonly key: string;
}

let gpd: Gpd;
const keys = new Map<string, MadeKey>();

const createKey = (kid: string, scope: Scope): Promise<MadeKey> =>
  gpd.json(['apikeys', 'create', kid, '--scope', scope, '--name', 'test']);

const secretOf = (name: string): string => keys.get(name)?.key ?? '';

function find(requestId: string, secret?: string, method = 'GET'): Promise<Reply> {
  const headers = secret === undefined ? {} : { authorization: `Bearer ${secret}` };
  return ask(gpd.url, `/v1/decisions/${requestId}`, { method, headers });
}

beforeAll(async () => {
  const tenants = [
    { kid: KID, origins: [ORIGIN] },
    { kid: 'other', origins: [] },
  ];
  gpd = await startGpd({ tenants });
  for (const scope of ['secret', 'read-only', 'operator', 'publishable'] as const)
    keys.set(`${KID} ${scope}`, await createKey(KID, scope));
  keys.set('other secret', await createKey('other', 'secret'));
  const last = async (): Promise<number> => (await find('x', secretOf('other secret'))).status;
  await vi.waitFor(async () => expect(await last()).toBe(404), SEEN_WITHIN);
});
afterAll(() => gpd.stop());

async function decide(signals?: Record<string, unknown>): Promise<ReturnType<typeof expectCore>> {
  const bundle = createBundle(gpd.targets[0]!, signals && { signals });
  return expectCore(await post(gpd.url, bundle, { origin: ORIGIN }), 'ok');
}

describe('GET /v1/decisions/{requestId}', () => {
  it.each(['secret', 'read-only', 'operator'])('tells a %s key what the browser was told', async (scope) => {
    const before = Date.now();
    const { transparencyToken, ...answer } = await decide();
    expect(transparencyToken).toBeDefined();
    const reply = await find(answer.requestId, secretOf(`${KID} ${scope}`));
    expect(reply.status).toBe(200);
    const decision = heldDecisionSchema.strict().parse(reply.json());
    const { rules, policyVersion, decidedAt, restricted, ref, contestUrl, ...storedAnswer } = decision;
    expect(storedAnswer).toEqual(answer);
    expect(restricted).toBe(false);
    expect(ref).toMatch(/^[\w-]{43}$/);
    expect(contestUrl).toBe(`${gpd.url}/my-data?kid=${KID}#contest`);
    expect(policyVersion).not.toBe('');
    expect(Date.parse(decidedAt)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(decidedAt)).toBeLessThanOrEqual(Date.now());
    expect(rules.every((rule) => rule.text.length > 10)).toBe(true);
    expect(reply.headers['cache-control']).toBe('no-store');
  });

  it('says which rules fired, in words', async () => {
    const { requestId } = await decide(headlessChrome());
    const { rules, class: visitorClass } = decisionResponseSchema.parse(
      (await find(requestId, secretOf(`${KID} secret`))).json(),
    );
    expect(visitorClass).toBe('undeclared_automation');
    expect(rules.map((rule) => rule.id)).toEqual(expect.arrayContaining(['A1', 'A2']));
  });

  it.each([
    ['no key', undefined],
    ['a key that was never made', `gpd_sk_${'A'.repeat(43)}`],
  ])('401 for %s', async (_name, secret) => {
    const { requestId } = await decide();
    const reply = await find(requestId, secret);
    expectError(reply, 'unauthenticated');
    expect(reply.headers['www-authenticate']).toMatch(/^Bearer\b/);
  });

  it('401 for a good key in another scheme, and for its hash', async () => {
    const { requestId } = await decide();
    const secret = secretOf(`${KID} secret`);
    const { id } = keys.get(`${KID} secret`)!;
    const [row] = await execute(gpd.dataDir, `SELECT hash FROM api_keys WHERE id = '${id}'`);
    expectError(await find(requestId, String(row?.['hash'])), 'unauthenticated');
    for (const authorization of [
      secret,
      `Basic ${secret}`,
      `Bearer ${secret} x`,
      `Bearer ${secret.slice(0, -1)}`,
    ]) {
      const reply = await ask(gpd.url, `/v1/decisions/${requestId}`, { headers: { authorization } });
      expectError(reply, 'unauthenticated');
    }
  });

  it('403 for a publishable key, before anything is looked up', async () => {
    const { requestId } = await decide();
    for (const id of [requestId, 'req_nothing']) {
      expectError(await find(id, secretOf(`${KID} publishable`)), 'insufficient-scope');
    }
  });

  it("404 for another tenant's decision as for none", async () => {
    const { requestId } = await decide();
    const foreign = await find(requestId, secretOf('other secret'));
    const unknown = await find(`req_${'0'.repeat(26)}`, secretOf('other secret'));
    expectError(foreign, 'no-such-decision');
    expectError(unknown, 'no-such-decision');
    expect(foreign.text).toBe(unknown.text);
  });

  it.each(['x', '%00', `req_${'0'.repeat(27)}`, "req_'%20OR%201=1", '..%2f..%2fhealthz', '%zz', '%ff'])(
    '404 for %j, and 401 without a key, whatever it is',
    async (id) => {
      expectError(await find(id, secretOf(`${KID} secret`)), 'no-such-decision');
      expectError(await find(id, 'gpd_sk_nobody'), 'unauthenticated');
    },
  );

  it('404 for a bundle that was refused', async () => {
    const refused = expectCore(await post(gpd.url, createBundle(gpd.targets[0]!, { clientTs: 0 })), 'stale');
    expectError(await find(refused.requestId, secretOf(`${KID} secret`)), 'no-such-decision');
  });

  it('notes the use of a key to the day and no finer', async () => {
    const lastUsed = async (): Promise<string | null | undefined> =>
      (await gpd.json<{ id: string; lastUsedAt: string | null }[]>(['apikeys', 'list', KID])).find(
        (key) => key.id === keys.get(`${KID} secret`)?.id,
      )?.lastUsedAt;
    await find('x', secretOf(`${KID} secret`));
    await vi.waitFor(async () => expect(await lastUsed()).toMatch(/^\d{4}-\d\d-\d\d$/), SEEN_WITHIN);
  });

  it('refuses a revoked key within 5 s, and only that one', async () => {
    const { requestId } = await decide();
    const doomed = await createKey(KID, 'secret');
    await vi.waitFor(async () => expect((await find(requestId, doomed.key)).status).toBe(200), SEEN_WITHIN);
    await gpd.json(['apikeys', 'revoke', doomed.id]);
    await vi.waitFor(
      async () => expectError(await find(requestId, doomed.key), 'unauthenticated'),
      SEEN_WITHIN,
    );
    expect((await find(requestId, secretOf(`${KID} operator`))).status).toBe(200);
  });
});
