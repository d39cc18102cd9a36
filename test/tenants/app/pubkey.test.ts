import { createECDH } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { runGpd } from '../../support/command.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { expectError, REQUEST_ID, SEEN_WITHIN } from '../../support/expect.ts';
import { ask, type Reply } from '../../support/http.ts';
import { startGpd } from '../../support/server.ts';
import { started } from '../../support/started.ts';

const gpd = started(() =>
  startGpd({
    tenants: [
      { kid: KID, origins: [ORIGIN] },
      { kid: 'Other_1.x', origins: [] },
    ],
  }),
);

const get = (query: string, headers: Record<string, string> = {}): Promise<Reply> =>
  ask(gpd.url, `/_fp/pubkey${query}`, { headers });

describe('GET /_fp/pubkey', () => {
  it('answers the published key, in bytes that are the same for everybody', async () => {
    const replies = [
      await get(`?kid=${KID}`),
      await get(`?kid=${KID}`, { origin: ORIGIN }),
      await get(`?kid=${KID}`, { origin: 'https://evil.example', cookie: 'gp_session=x', 'user-agent': 'x' }),
      await get(`?kid=${KID}&more=1`, { accept: 'text/html', 'accept-encoding': 'gzip, br' }),
    ];
    for (const reply of replies) {
      expect(reply.status).toBe(200);
      expect(reply.text).toBe(replies[0]?.text);
      expect(reply.headers['etag']).toBe(replies[0]?.headers['etag']);
      expect(reply.headers['cache-control']).toBe('public, max-age=300');
      expect(reply.headers['access-control-allow-origin']).toBe('*');
      expect(reply.headers['cross-origin-resource-policy']).toBe('cross-origin');
      expect(reply.headers['content-type']).toMatch(/^application\/json\b/);
      expect(reply.headers['x-request-id']).toMatch(REQUEST_ID);
      expect(reply.headers).not.toHaveProperty('set-cookie');
      expect(reply.headers).not.toHaveProperty('access-control-allow-credentials');
    }
    const publicKey = gpd.targets[0]?.publicKey.toString('base64') ?? '';
    expect(replies[0]?.json()).toEqual({ kid: KID, alg: 'ECDH-P256+HKDF-SHA256+AES-256-GCM', publicKey });
  });

  it('the key is 65 bytes on the curve, another one for each tenant', async () => {
    const points = [];
    for (const kid of [KID, 'Other_1.x']) {
      const { publicKey } = (await get(`?kid=${kid}`)).json() as { publicKey: string };
      const point = Buffer.from(publicKey, 'base64');
      expect([point.length, point[0]]).toEqual([65, 4]);
      const pair = createECDH('prime256v1');
      pair.generateKeys();
      expect(pair.computeSecret(point)).toHaveLength(32);
      points.push(publicKey);
    }
    expect(points[0]).not.toBe(points[1]);
  });

  it('has a strong ETag and answers 304 to who holds it', async () => {
    const first = await get(`?kid=${KID}`);
    const etag = String(first.headers['etag']);
    expect(etag).toMatch(/^"[^"]+"$/);
    for (const value of [`W/${etag}`, `"other", ${etag}`, '*']) {
      const reply = await get(`?kid=${KID}`, { 'if-none-match': value });
      expect({ value, status: reply.status, text: reply.text }).toEqual({ value, status: 304, text: '' });
      expect(reply.headers['etag']).toBe(etag);
      expect(reply.headers['cache-control']).toBe('public, max-age=300');
      expect(reply.headers['access-control-allow-origin']).toBe('*');
    }
    expect((await get(`?kid=${KID}`, { 'if-none-match': '"other"' })).status).toBe(200);
  });

  it.each(['', '?kid=', `?kid=${KID}&kid=${KID}`, '?kid[]=a'])('400 missing-kid: %j', async (query) => {
    expectError(await get(query), 'missing-kid');
  });

  it.each(['nobody', 'ACME', 'acme%00', 'acme%7Cx', `${'k'.repeat(65)}`, '__proto__', '%2e%2e'])(
    '404 unknown-kid: %s',
    async (kid) => {
      const reply = await get(`?kid=${kid}`);
      expectError(reply, 'unknown-kid');
      expect(reply.headers['access-control-allow-origin']).toBe('*');
      expect(reply.headers['cache-control'] ?? 'no-store').not.toMatch(/public/);
    },
  );

  it('is a caller error when the query is no percent-encoding', async () => {
    expect((await get('?kid=%zz')).status).toBeLessThan(500);
  });

  it('HEAD says the same without the body', async () => {
    const reply = await ask(gpd.url, `/_fp/pubkey?kid=${KID}`, { method: 'HEAD' });
    expect(reply.status).toBe(200);
    expect(reply.text).toBe('');
    expect(reply.headers['etag']).toBe((await get(`?kid=${KID}`)).headers['etag']);
  });
});

// Guards against a writer of the database who replaces the public key and then reads every bundle on its way.
it('a public key that is not that of the private key is not published, and doctor names it', async () => {
  const pair = createECDH('prime256v1');
  const foreign = pair.generateKeys('base64');
  const tamperedGpd = await startGpd({ tenants: [{ kid: KID, origins: [ORIGIN] }] });
  const { dataDir } = tamperedGpd;
  await execute(
    dataDir,
    // One transaction is needed: a server that reads between the last two statements would miss the change.
    'BEGIN IMMEDIATE',
    `UPDATE seal_keys SET public_key = '${foreign}'`,
    "UPDATE revisions SET revision = revision + 1 WHERE scope = 'tenants'",
    "UPDATE tenants SET revision = (SELECT revision FROM revisions WHERE scope = 'tenants')",
    'COMMIT',
  );
  const ask = async () => (await fetch(`${tamperedGpd.url}/_fp/pubkey?kid=${KID}`)).status;
  await expect.poll(ask, SEEN_WITHIN).toBe(404);
  await tamperedGpd.stop();
  const again = await startGpd({ dataDir });
  expect((await fetch(`${again.url}/_fp/pubkey?kid=${KID}`)).status).toBe(404);
  await again.stop();
  const doctor = await runGpd(['doctor', '--all'], { env: { GPD_DATA_DIR: dataDir } });
  expect(doctor.stdout).toMatch(/fail +keys\.published/);
});
