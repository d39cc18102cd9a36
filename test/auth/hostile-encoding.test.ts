import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_TOKEN_LENGTH } from '../../src/auth/tokens.ts';
import { type Authenticate, makeAuthenticator } from '../../src/rights/oidc.ts';
import { type Idp, startIdp } from '../support/oidc.ts';
import { answerTo, oidcSettings, WHY } from './support.ts';

/** A good token in another spelling, and what only looks like one. */

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
let idp: Idp;
let authenticate: Authenticate;
let good: string;
let parts: readonly string[];
beforeAll(async () => {
  idp = await startIdp();
  authenticate = makeAuthenticator(oidcSettings(idp), Date.now, () => {});
  good = await idp.token({ gpd_role: 'subject' });
  parts = good.split('.');
  expect((await answerTo(authenticate, `Bearer ${good}`)).status).toBe(200);
});
afterAll(() => idp.stop());

async function refused(token: string, why: RegExp = WHY.malformed): Promise<void> {
  const answer = await answerTo(authenticate, `Bearer ${token}`);
  expect(answer).toMatchObject({ status: 401, code: 'unauthenticated' });
  expect(answer.details).toHaveLength(1);
  expect(answer.details[0]).toMatch(why);
}

describe('the size', () => {
  const sized = (length: number): string => {
    const padded = (pad: number): string => idp.forge(idp.claims({ pad: 'x'.repeat(pad) }));
    const pad = Math.floor(((length - padded(0).length) * 3) / 4);
    const found = [pad - 1, pad, pad + 1].map(padded).find((token) => token.length === length);
    if (found === undefined) throw new Error(`no token of ${length} characters`);
    return found;
  };

  it('may be 8 KB and not more', async () => {
    expect((await answerTo(authenticate, `Bearer ${sized(MAX_TOKEN_LENGTH)}`)).status).toBe(200);
    await refused(sized(MAX_TOKEN_LENGTH + 2));
  });

  it.each([9000, 16_384, 1_000_000])('%d characters', async (length) => {
    await refused(idp.forge(idp.claims({ pad: 'x'.repeat(length) })));
    await refused('A'.repeat(length));
    await refused(`${'A'.repeat(length)}.${parts[1]}.${parts[2]}`);
  });
});

it('no single character of a token can be changed, dropped or doubled', async () => {
  let tried = 0;
  for (let i = 0; i < good.length; i += 1) {
    const at = ALPHABET.indexOf(good[i] ?? '');
    const changed = ALPHABET[(at + 1 + (i % 62)) % 64] ?? 'A';
    for (const insert of [changed, '', `${good[i]}${good[i]}`]) {
      const answer = await answerTo(authenticate, `Bearer ${good.slice(0, i)}${insert}${good.slice(i + 1)}`);
      expect(answer.status, `character ${i} became ${insert}`).toBe(401);
      tried += 1;
    }
  }
  expect(tried).toBeGreaterThan(1000);
});
