import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Visit, visit } from '../attest/support.ts';
import { KID } from '../support/constants.ts';
import { boundOf, type DeviceKey, type Instructions, makeDeviceKey, proofOf, send } from '../support/dbsc.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { announcedSeed, seededRandom } from '../support/make.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { FULL, sized, tell } from './support/size.ts';

/** Mutated proofs of device-bound sessions over HTTP: none is accepted, none is a 500, and the honest ones beside them are. */

const ROUNDS = sized(400, 2000);
const EACH = 50;

let gpd: Gpd;
beforeAll(async () => {
  gpd = await startGpd({ settings: { GPD_RATE_PRIVACY: 'off', GPD_LOG_LEVEL: 'error' } });
  await gpd.cli(['tenants', 'set', KID, 'attest.dbsc=true']);
  await vi.waitFor(async () => expect((await visit(gpd)).registration).not.toBeNull(), SEEN_WITHIN);
});
afterAll(() => gpd.stop());

const random = seededRandom(announcedSeed('dbsc'));
const below = (n: number): number => random(4).readUInt32BE() % n;

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.="';

/** A letter is another, gone, doubled or swapped; or a part is another's. */
function mutate(text: string, other: string): string {
  const at = below(text.length);
  const letter = LETTERS[below(LETTERS.length)] ?? '';
  const parts = text.split('.');
  const part = below(3);
  const cases: (() => string)[] = [
    () => text.slice(0, at) + letter + text.slice(at + 1),
    () => text.slice(0, -1) + letter,
    () => text.slice(0, at) + text.slice(at + 1),
    () => text.slice(0, at) + text.slice(at, at + 9) + text.slice(at),
    () => text.slice(0, at),
    () => parts.with(part, other.split('.')[part] ?? '').join('.'),
    () => parts.with(part, random(1 + below(90)).toString('base64url')).join('.'),
    () => parts.toReversed().join('.'),
    () => `${text}.${letter}`,
    () => text + letter,
  ];
  return cases[below(cases.length)]?.() ?? '';
}

interface Target {
  readonly good: string;
  readonly other: string;
  readonly sendProof: (proof: string) => Promise<{ readonly status: number }>;
}

async function registering(at: Visit, key: DeviceKey): Promise<Target & { readonly cookie: string }> {
  const { path = '', challenge = '', authorization } = at.registration ?? {};
  const make = (by: DeviceKey): string => proofOf(by, challenge, true, { claims: { authorization } });
  const cookie = `gp_session=${at.session}`;
  const sendProof = (proof: string) => send(gpd.url, path, cookie, { 'secure-session-response': proof });
  return { good: make(key), other: make(makeDeviceKey()), sendProof, cookie };
}

async function refreshing(): Promise<Target> {
  const [at, key] = [await visit(gpd), makeDeviceKey()];
  const { good, sendProof, cookie } = await registering(at, key);
  const bound = (await sendProof(good)) as Awaited<ReturnType<typeof send>>;
  expect([bound.status, boundOf(bound).value]).toEqual([200, expect.stringMatching(/./)]);
  const { session_identifier: id, refresh_url: path } = bound.json() as Instructions;
  const asked = await send(gpd.url, path, cookie, { 'sec-secure-session-id': id });
  const challenge = String(asked.headers['secure-session-challenge']).split('"')[1] ?? '';
  return {
    good: proofOf(key, challenge, false),
    other: proofOf(makeDeviceKey(), challenge, false),
    sendProof: (proof) =>
      send(gpd.url, path, cookie, { 'sec-secure-session-id': id, 'secure-session-response': proof }),
  };
}

it(
  `of ${ROUNDS} mutated proofs none is accepted and none is a 500`,
  async () => {
    const all: Record<number, number> = {};
    for (let turn = 0; turn < ROUNDS / EACH; turn += 1) {
      const { good, other, sendProof } =
        turn % 2 === 0 ? await registering(await visit(gpd), makeDeviceKey()) : await refreshing();
      for (let round = 0; round < EACH; round += 1) {
        let proof = good;
        while (proof === good || proof === other) proof = mutate(good, other);
        const { status } = await sendProof(proof);
        if (![400, 401, 403].includes(status)) tell('dbsc', `${status} ${proof}`);
        all[status] = (all[status] ?? 0) + 1;
      }
      expect((await sendProof(good)).status).toBe(200);
    }
    tell('dbsc', JSON.stringify(all));
    // 401: the token in the claims is no token any more. 403: nothing is left of the proof, so that a challenge is due.
    expect(Object.keys(all).filter((status) => !['400', '401', '403'].includes(status))).toEqual([]);
    expect(all[400]).toBeGreaterThan(ROUNDS / 2);
  },
  FULL ? 300_000 : 60_000,
);
