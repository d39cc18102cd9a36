import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ORIGIN } from '../support/constants.ts';
import { expectCore, post, SEEN_WITHIN } from '../support/expect.ts';
import { ask } from '../support/http.ts';
import { createBundle } from '../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../support/server.ts';

/** The running server sees a change of the command line within 5 s. */

interface MadeKey {
  readonly generation: number;
  readonly state: string;
  readonly publicKey: string;
}

const TENANTS = ['rotated', 'graced', 'destroyed', 'staged', 'moved'];
let gpd: Gpd;
beforeAll(async () => {
  gpd = await startGpd({ tenants: TENANTS.map((kid) => ({ kid, origins: [ORIGIN] })) });
});
afterAll(() => gpd.stop());

const first = (kid: string): SealTarget => gpd.targets[TENANTS.indexOf(kid)]!;
const targetOf = (kid: string, { publicKey }: MadeKey): SealTarget => ({
  kid,
  publicKey: Buffer.from(publicKey, 'base64'),
});

async function published(kid: string): Promise<string | undefined> {
  const reply = await ask(gpd.url, `/_fp/pubkey?kid=${kid}`);
  return (reply.json() as { publicKey?: string }).publicKey;
}

const waitUntilSeen = (check: () => Promise<unknown>): Promise<unknown> => vi.waitFor(check, SEEN_WITHIN);

async function reasonOf(target: SealTarget, origin = ORIGIN): Promise<string> {
  const reply = await post(gpd.url, createBundle(target), { origin });
  return (reply.json() as { reason: string }).reason;
}

describe.concurrent('a running server', () => {
  it('publishes a rotated key; the old one still opens during its grace', async () => {
    const before = await ask(gpd.url, '/_fp/pubkey?kid=rotated');
    const newKey = await gpd.json<MadeKey>(['keys', 'rotate', 'rotated']);
    expect(newKey).toMatchObject({ generation: 2, state: 'published' });
    await waitUntilSeen(async () => expect(await published('rotated')).toBe(newKey.publicKey));
    const after = await ask(gpd.url, '/_fp/pubkey?kid=rotated');
    expect(after.headers['etag']).not.toBe(before.headers['etag']);
    expect(await reasonOf(first('rotated'))).toBe('ok');
    expect(await reasonOf(targetOf('rotated', newKey))).toBe('ok');
  });

  it('stops opening with the old key when its grace ends', async () => {
    const newKey = await gpd.json<MadeKey>(['keys', 'rotate', 'graced', '--grace', '4s']);
    await waitUntilSeen(async () => expect(await published('graced')).toBe(newKey.publicKey));
    expect(await reasonOf(first('graced'))).toBe('ok');
    const expectEnd = async (): Promise<void> =>
      expect(await reasonOf(first('graced'))).toBe('decrypt-failed');
    await vi.waitFor(expectEnd, { timeout: 20_000, interval: 200 });
    expect(await reasonOf(targetOf('graced', newKey))).toBe('ok');
  });

  it('neither publishes nor opens a staged key until it is rotated in', async () => {
    const staged = await gpd.json<MadeKey>(['keys', 'generate', 'staged']);
    expect(staged).toMatchObject({ generation: 2, state: 'staged' });
    // The server has read it: it knows of what came later.
    const later = await gpd.json<MadeKey>(['tenants', 'add', 'later', '--origin', 'https://later.example']);
    await waitUntilSeen(async () => expect(await published('later')).toBe(later.publicKey));
    expect(await published('staged')).toBe(first('staged').publicKey.toString('base64'));
    expect(await reasonOf(targetOf('staged', staged))).toBe('decrypt-failed');
    const rotated = await gpd.json<MadeKey>(['keys', 'rotate', 'staged']);
    expect(rotated).toEqual({ ...staged, state: 'published' });
    await waitUntilSeen(async () => expect(await reasonOf(targetOf('staged', staged))).toBe('ok'));
  });

  it('lets in the origins that a tenant has now, and no others', async () => {
    const origin = 'https://moved.example';
    const answer = () => post(gpd.url, createBundle(first('moved')), { origin });
    expect((await answer()).headers).not.toHaveProperty('access-control-allow-origin');
    await gpd.json(['tenants', 'set', 'moved', `origins=${origin}`]);
    await waitUntilSeen(async () =>
      expect((await answer()).headers['access-control-allow-origin']).toBe(origin),
    );
    expect(expectCore(await answer(), 'ok')).toHaveProperty('transparencyToken');
    const old = expectCore(await post(gpd.url, createBundle(first('moved')), { origin: ORIGIN }), 'ok');
    expect(old).not.toHaveProperty('transparencyToken');
  });
});

describe('keys rewrap', () => {
  it('changes the master key under a running server, which goes on and sees what comes after', async () => {
    const ownServer = await startGpd();
    const acme = ownServer.targets[0]!;
    const path = join(ownServer.dataDir, 'master.key');
    const before = readFileSync(path, 'utf8');
    await ownServer.json(['keys', 'rewrap', '--yes']);
    expect(readFileSync(path, 'utf8')).not.toBe(before);
    expectCore(await post(ownServer.url, createBundle(acme)), 'ok');
    const newKey = await ownServer.json<MadeKey>(['tenants', 'add', 'later']);
    const later = () => post(ownServer.url, createBundle(targetOf('later', newKey)));
    await waitUntilSeen(async () => expectCore(await later(), 'ok'));
    expectCore(await post(ownServer.url, createBundle(acme)), 'ok');
    expect((await ask(ownServer.url, '/readyz')).status).toBe(200);
    await ownServer.stop();

    const again = await startGpd({ dataDir: ownServer.dataDir });
    expectCore(await post(again.url, createBundle(acme)), 'ok');
    await again.stop();
  });
});
