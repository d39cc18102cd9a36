import { afterAll, beforeAll, expect, it } from 'vitest';
import { call, challengeOf, type Visit, visit } from '../attest/support.ts';
import { ORIGIN } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { announcedSeed, seededRandom } from '../support/make.ts';
import { create, createPasskey, get, type Passkey } from '../support/passkey.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { FULL, sized, tell } from './support/size.ts';

/** Forged and mutated ceremonies over HTTP: none is accepted, none is a 500, and the honest one beside them is. */

const ROUNDS = sized(400, 10_000);
const LANES = 8;

let gpd: Gpd;
beforeAll(async () => {
  gpd = await startGpd({ settings: { GPD_RATE_PRIVACY: 'off', GPD_LOG_LEVEL: 'error' } });
});
afterAll(() => gpd.stop());

const random = seededRandom(announcedSeed('passkeys'));
const below = (n: number): number => random(4).readUInt32BE() % n;

interface Parts {
  id: string;
  rawId: string;
  type: string;
  response: Record<string, string>;
}

/** One byte of one part is another, or some of it is gone, or doubled. */
function mutate(text: string): string {
  const bytes = Buffer.from(text, 'base64url');
  const at = below(bytes.length);
  const kind = below(4);
  if (kind === 0) bytes[at] = (bytes[at] ?? 0) ^ (1 << below(8));
  if (kind === 1) return bytes.subarray(0, at).toString('base64url');
  if (kind === 2) return Buffer.concat([bytes, bytes.subarray(at)]).toString('base64url');
  if (kind === 3) bytes.fill(random(1)[0] ?? 0, at, Math.min(bytes.length, at + 1 + below(8)));
  return bytes.toString('base64url');
}

/**
 * Any change of a signed part must fail. `create` does not sign what it says of the page, so that is forged
 * whole.
 */
function forge(good: Parts, passkey: Passkey, challenges: readonly string[]): unknown {
  const [forCreate = '', forGet = ''] = challenges;
  const cases: (() => unknown)[] = [
    () => {
      const parts = structuredClone(good);
      if (parts.response['attestationObject'] !== undefined) return null;
      const names = Object.keys(parts.response);
      const name = names[below(names.length)] ?? '';
      const changed = mutate(parts.response[name] ?? '');
      parts.response[name] = changed;
      return changed === good.response[name] ? null : parts;
    },
    () =>
      create(createPasskey(), {
        origin: `https://${random(4).toString('hex')}.example`,
        challenge: forCreate,
      }),
    () => create(createPasskey(), { origin: ORIGIN, rpId: random(6).toString('hex'), challenge: forCreate }),
    () => create(createPasskey(), { origin: ORIGIN, challenge: forGet }),
    () => create(createPasskey(), { origin: ORIGIN, challenge: mutate(forGet) }),
    () =>
      get(
        { ...createPasskey(), id: passkey.id, counter: below(1000) },
        { origin: ORIGIN, challenge: forGet },
      ),
    () => get(createPasskey(), { origin: ORIGIN, challenge: forGet }),
    () => ({ ...good, id: random(below(40)).toString('base64url') }),
    () => ({ ...good, type: random(4).toString('hex') }),
    () => ({
      ...good,
      response: { ...good.response, attestationObject: random(1 + below(600)).toString('base64url') },
    }),
    () => ({
      ...get(passkey, { origin: ORIGIN, challenge: forGet }),
      response: {
        ...good.response,
        attestationObject: undefined,
        signature: random(below(90)).toString('base64url'),
      },
    }),
    () => random(below(64)).toString('latin1'),
    () => [[[[[[]]]]]],
  ];
  return cases[below(cases.length)]?.();
}

/** Half of them mutate a new passkey, half one that is known. */
async function attack(at: Visit, passkey: Passkey, rounds: number): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  const [forCreate, forGet] = [await challengeOf(gpd, at), await challengeOf(gpd, at, 'get')];
  const options = { origin: ORIGIN };
  for (let round = 0; round < rounds; round += 1) {
    const isNew = round % 2 === 0;
    const good = isNew
      ? create(createPasskey(), { ...options, challenge: forCreate })
      : get({ ...passkey, counter: 100 + round }, { ...options, challenge: forGet });
    const credential = forge(good as unknown as Parts, passkey, [forCreate, forGet]);
    const { status } = await call(gpd, 'verify', at, { credential });
    if (status !== 400) tell('passkeys', `${status} ${JSON.stringify(credential)}`);
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
  return statuses;
}

it(
  `of ${ROUNDS} forged or mutated ceremonies none is accepted and none is a 500`,
  async () => {
    const passkey = createPasskey(1);
    const first = await visit(gpd);
    const credential = create(passkey, { origin: ORIGIN, challenge: await challengeOf(gpd, first) });
    expect((await call(gpd, 'verify', first, { credential })).status).toBe(200);
    const count = async (table: string) =>
      Number((await execute(gpd.dataDir, `SELECT COUNT(*) AS n FROM ${table}`))[0]?.['n']);
    const before = await count('credentials');
    const all: Record<number, number> = {};
    // A token lives five minutes: each lane takes a new one now and then.
    const turns = Math.ceil(ROUNDS / LANES / 50);
    for (let turn = 0; turn < turns; turn += 1) {
      const lanes = await Promise.all(
        Array.from({ length: LANES }, async () => attack(await visit(gpd), passkey, 50)),
      );
      for (const statuses of lanes)
        for (const [status, n] of Object.entries(statuses))
          all[Number(status)] = (all[Number(status)] ?? 0) + n;
    }
    tell('passkeys', JSON.stringify(all));
    expect(Object.keys(all)).toEqual(['400']);
    expect(all[400]).toBeGreaterThanOrEqual(ROUNDS);
    expect(await count('credentials')).toBe(before);
    const last = await visit(gpd);
    const honest = get(
      { ...passkey, counter: 2 },
      { origin: ORIGIN, challenge: await challengeOf(gpd, last, 'get') },
    );
    expect((await call(gpd, 'verify', last, { credential: honest })).status).toBe(200);
  },
  FULL ? 900_000 : 60_000,
);
