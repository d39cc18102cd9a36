import { createHash, randomInt } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sealedBundleSchema } from '../../src/schema/bundle.ts';
import { describeInChromium, launchShell } from './support/chromium.ts';
import { makeSealKey } from './support/seal-keys.ts';
import { type Site, startSite } from './support/site.ts';

const ROUNDS = 1000;
const BATCH = 100;
const KID = 'acme-shop.1_A';

interface Sealed {
  readonly bundle: unknown;
  readonly size: number;
  readonly sha256: string;
}

/** Runs in the page: `count` plaintexts of seeded sizes and bytes, each sealed and hashed. */
const SEAL_MANY = `async ({ seed, count, recipient }) => {
  const { sealBundle } = await import('/v1/agent.js');
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  const hex = (bytes) => Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, '0')).join('');
  const out = [];
  for (let i = 0; i < count; i += 1) {
    const size = next() % 4 === 0 ? next() % 20000 : next() % 64;
    const plaintext = Uint8Array.from({ length: size }, () => next() & 255);
    const bundle = await sealBundle(recipient, plaintext);
    out.push({ bundle, size, sha256: hex(await crypto.subtle.digest('SHA-256', plaintext)) });
  }
  return out;
}`;

describeInChromium('browser/seal-roundtrip', () => {
  let site: Site;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    site = await startSite();
    browser = await launchShell();
    page = await browser.newPage();
    await page.goto(site.origin);
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  const sealMany = (seed: number, publicKey: string): Promise<Sealed[]> =>
    page.evaluate(
      `(${SEAL_MANY})(${JSON.stringify({ seed, count: BATCH, recipient: { kid: KID, publicKey } })})`,
    ) as Promise<Sealed[]>;

  it(`opens on the server what the browser sealed, ${ROUNDS} times`, async () => {
    const key = makeSealKey();
    const firstSeed = randomInt(2 ** 31);
    console.log(`seed ${firstSeed}`);
    const seen = new Set<string>();
    for (let batch = 0; batch < ROUNDS / BATCH; batch += 1) {
      for (const { bundle, size, sha256 } of await sealMany(firstSeed + batch, key.publicKey)) {
        const opened = key.open(sealedBundleSchema.parse(bundle));
        expect(opened?.length, `seed ${firstSeed + batch}`).toBe(size);
        expect(createHash('sha256').update(opened!).digest('hex')).toBe(sha256);
        seen.add((bundle as { epk: string; iv: string }).epk);
      }
    }
    expect(seen.size).toBe(ROUNDS);
  });

  it('cannot be opened by another key or under another kid', async () => {
    const key = makeSealKey();
    const [first] = await sealMany(1, key.publicKey);
    const bundle = sealedBundleSchema.parse(first!.bundle);
    expect(key.open(bundle)).not.toBeNull();
    expect(makeSealKey().open(bundle)).toBeNull();
    expect(key.open({ ...bundle, kid: 'acme-shop.1_B' })).toBeNull();
  });
});
