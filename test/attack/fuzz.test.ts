import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ORIGIN } from '../support/constants.ts';
import { INGEST } from '../support/expect.ts';
import { JSON_TYPE } from '../support/http.ts';
import { announcedSeed, seededRandom } from '../support/make.ts';
import { type GpdProcess, startProcess } from '../support/process.ts';
import { makePlaintext, seal } from '../support/seal.ts';
import { createMutator } from './support/mutate.ts';
import { FULL, sized, tell } from './support/size.ts';

/** Mutations of a good bundle: of its bytes, of its envelope, and of what is inside the seal. Never a 500, no growth. */

const ROUNDS = sized(6000, 1_000_000);
const LANES = 16;
/** Above what a warm server holds; a leak of 200 bytes a bundle would show at full size. */
const GROWTH_MB = sized(60, 150);

let gpd: GpdProcess;
const agent = new Agent({ keepAlive: true, maxSockets: LANES });
beforeAll(async () => {
  gpd = await startProcess({ settings: { GPD_LOG_LEVEL: 'error' } });
});
afterAll(async () => {
  agent.destroy();
  await gpd.stop();
});

function send(body: Uint8Array): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const pending = request(gpd.url + INGEST, {
      method: 'POST',
      agent,
      headers: { ...JSON_TYPE, origin: ORIGIN, 'content-length': body.length },
    });
    pending.once('error', reject);
    pending.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    pending.end(body);
  });
}

/** Resident memory of the server, as Linux counts it. */
const residentMb = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gpd.pid}/status`, 'utf8'))?.[1]) / 1024;

/** The interface allows these reasons under each status. */
const REASONS: Readonly<Record<number, readonly string[]>> = {
  200: ['ok'],
  400: ['malformed-sealed-bundle', 'decrypt-failed', 'stale'],
  401: ['unknown-key'],
  409: ['replay'],
  413: ['payload-too-large'],
  451: ['consent-missing'],
};

it(
  `${ROUNDS} mutated bundles: never a 500, never another word than the table's, no growth`,
  async () => {
    const seed = announcedSeed('fuzz');
    const mutator = createMutator(seededRandom(seed));
    const target = gpd.targets[0]!;
    const make = {
      bytes: () => mutator.bytes(Buffer.from(JSON.stringify(seal(target, makePlaintext())))),
      envelope: () => Buffer.from(mutator.json(seal(target, makePlaintext()))),
      plaintext: () => Buffer.from(JSON.stringify(seal(target, mutator.json(makePlaintext())))),
      plaintextBytes: () => {
        const inside = mutator.bytes(Buffer.from(JSON.stringify(makePlaintext())));
        return Buffer.from(JSON.stringify(seal(target, inside)));
      },
      signals: () => {
        const plaintext = makePlaintext();
        const signals = mutator.raw(mutator.json(plaintext['signals']));
        return Buffer.from(
          JSON.stringify(
            seal(
              target,
              JSON.stringify({ ...plaintext, signals: 0 }).replace('"signals":0', `"signals":${signals}`),
            ),
          ),
        );
      },
    } as const;
    const kinds = Object.keys(make) as (keyof typeof make)[];
    const counts = new Map<string, number>();
    let rounds = 0;
    let warm = 0;
    const lane = async (): Promise<void> => {
      while (rounds < ROUNDS) {
        const kind = kinds[rounds % kinds.length]!;
        rounds += 1;
        if (rounds === Math.floor(ROUNDS / 3)) warm = residentMb();
        const body = make[kind]();
        const { status, text } = await send(body);
        const answer = JSON.parse(text) as { reason?: string; error?: string };
        const word = answer.reason ?? answer.error ?? '';
        // The whole case, so that it can become a test of its own.
        if (!REASONS[status]?.includes(word))
          throw new Error(`${kind}, seed ${seed}: ${status} ${text}\n${body.toString('latin1')}`);
        counts.set(`${kind} ${word}`, (counts.get(`${kind} ${word}`) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    const grown = residentMb() - warm;
    const words = [...counts].map(([name, n]) => `${name} ${n}`);
    tell(
      'fuzz',
      `${ROUNDS} mutations (${words.join(', ')}); resident memory ${grown.toFixed(1)} MB more than after the first third`,
    );
    expect(gpd.logs()).toBe('');
    expect(grown).toBeLessThan(GROWTH_MB);
    // A mutator that only ever made garbage would prove nothing about what stands behind the seal.
    expect(counts.get('plaintext ok') ?? 0).toBeGreaterThan(0);
    expect(counts.get('signals ok') ?? 0).toBeGreaterThan(ROUNDS / 20);
  },
  FULL ? 7_200_000 : 120_000,
);
