import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { chooseDecryptor, type Decryptor } from '../../../src/ingest/decrypt/decrypt-worker.ts';
import type { Unsealed } from '../../../src/ingest/open.ts';
import { createSymmetricOpener } from '../../../src/seal/open.ts';
import { sealSymmetric, sealTo } from '../../../src/seal/seal.ts';
import type { SealKeyChanges } from '../../../src/tenants/directory.ts';
import type { SealKeys, Tenant } from '../../../src/tenants/tenant.ts';
import { createPair } from '../../seal/support.ts';
import { tempDir } from '../../support/command.ts';
import { createIngestTenant, seededRandom } from '../../support/make.ts';

const BUILT = new URL('../../../dist/ingest/decrypt/worker.js', import.meta.url);
const random = seededRandom('test/app/opening');
const [newest, older, foreign] = [createPair(random(32)), createPair(random(32)), createPair(random(32))];
const shared = random(32);
const keys: SealKeys = {
  generations: [
    { generation: 2, privateKey: newest.scalar },
    { generation: 1, privateKey: older.scalar },
  ],
  symmetric: shared,
};

const body = (bundle: object): Buffer => Buffer.from(JSON.stringify(bundle));
const sealed = (text: string, to = newest, kid = 'acme'): Buffer =>
  body(sealTo(kid, to.publicKey, Buffer.from(text), random));
/** The two threads have different kinds of bytes. */
const readable = (answer: Unsealed | null) =>
  answer && { ...answer, plaintext: answer.plaintext && Buffer.from(answer.plaintext).toString() };
type Readable = ReturnType<typeof readable>;

/** @param generation null: the symmetric key */
const opened = (plaintext: string, generation: number | null = 2): Readable => ({
  kid: 'acme',
  symmetric: generation === null,
  generation,
  plaintext,
});
const shut = (kid = 'acme', symmetric = false): Readable => ({
  kid,
  symmetric,
  generation: null,
  plaintext: null,
});

interface World {
  readonly entry?: URL | null;
  readonly processors?: number;
  /** Generations that are live no more. */
  readonly endedGenerations?: readonly number[];
  readonly tenant?: Tenant;
}

const running: Decryptor[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((opening) => opening.stop()));
});

/** The tenant of this thread opens with the older key alone: which thread opened something shows in what it opens. */
function start({ entry = BUILT, processors = 2, endedGenerations = [], tenant }: World = {}) {
  const faults: unknown[] = [];
  const usedKeys: string[] = [];
  const allKeys = new Map<string, SealKeys | null>();
  const here = tenant ?? createIngestTenant([older.scalar]);
  const deps = {
    tenants: (kid: string) => {
      if (kid === 'damaged') throw new Error('of damaged alone');
      return kid === 'acme' ? here : undefined;
    },
    allKeys: () => allKeys,
    noteOpened: (kid: string, generation: number) => {
      usedKeys.push(`${kid} ${generation}`);
      return !endedGenerations.includes(generation);
    },
    onFault: (error: unknown) => faults.push(error),
  };
  const decryptor = chooseDecryptor(entry, deps, processors);
  running.push(decryptor);
  const opening = {
    ...decryptor,
    open(raw: Uint8Array) {
      const answer = decryptor.open(raw);
      return answer instanceof Promise ? answer.then(readable) : readable(answer);
    },
  };
  const setKeys = (changes: SealKeyChanges): void => {
    for (const [kid, material] of changes) allKeys.set(kid, material);
    opening.setKeys(changes);
  };
  setKeys(new Map([['acme', keys]]));
  return { opening, faults, used: usedKeys, setKeys };
}

/** Until the thread is ready, this one opens, and at once. */
async function ready(world: World = {}) {
  const started = start(world);
  await expect.poll(() => started.opening.open(Buffer.from('{}')) instanceof Promise).toBe(true);
  return started;
}

const scriptOf = (text: string): URL => new URL(`data:text/javascript,${encodeURIComponent(text)}`);

/** A thread that is ready, and fails at the first body. */
const failingThread = (fails: string): URL =>
  scriptOf(`import { parentPort } from 'node:worker_threads';
    parentPort.on('message', ({ bodies }) => { if (bodies) { ${fails} } });
    parentPort.postMessage([]);`);

describe('opening in a thread', () => {
  it('answers what this thread would, in the order of the bodies', async () => {
    const { opening, used: usedKeys } = await ready();
    const [ours, text] = [sealSymmetric('acme', shared, Buffer.from('shared'), random), 'text '];
    const cases: readonly (readonly [Buffer, Readable])[] = Array.from({ length: 100 }, (_, i) => [
      [sealed(`${text}${i}`), opened(`${text}${i}`)] as const,
      [sealed('', older), opened('', 1)] as const,
      [body(ours), opened('shared', null)] as const,
      [sealed(text, foreign), shut()] as const,
      [sealed(text, newest, 'nobody'), shut('nobody')] as const,
      [body({ ...ours, kid: 'nobody' }), shut('nobody', true)] as const,
      [body(sealSymmetric('acme', random(32), Buffer.from(text), random)), shut('acme', true)] as const,
      [Buffer.from('{"kid":'), null] as const,
      [Buffer.of(0xff), null] as const,
    ]).flat();
    const answers = await Promise.all(cases.map(async ([raw]) => opening.open(raw)));
    expect(answers).toEqual(cases.map(([, answer]) => answer));
    const count = (keyName: string): number => usedKeys.filter((entry) => entry === keyName).length;
    expect([count('acme 2'), count('acme 1'), usedKeys.length]).toEqual([100, 100, 200]);
  });

  it('opens with the latest keys, and forgets a removed tenant', async () => {
    const { opening } = await ready();
    const before = opening.open(sealed('before'));
    expect(await before).toEqual(opened('before'));
    opening.setKeys(new Map([['acme', { generations: keys.generations.slice(1), symmetric: null }]]));
    expect(await opening.open(sealed('after'))).toEqual(shut());
    expect(await opening.open(sealed('after', older))).toEqual(opened('after', 1));
    const symmetric = sealSymmetric('acme', shared, Buffer.from('after'), random);
    expect(await opening.open(body(symmetric))).toEqual(shut('acme', true));
    opening.setKeys(new Map([['acme', null]]));
    expect(await opening.open(sealed('gone', older))).toEqual(shut());
  });

  it('accepts nothing from a generation whose grace ended after the thread got its keys', async () => {
    const { opening } = await ready({ endedGenerations: [1] });
    expect(await opening.open(sealed('late', older))).toEqual(shut());
    expect(await opening.open(sealed('in time'))).toEqual(opened('in time'));
  });

  it('opens here until the thread is ready', () => {
    const { opening } = start();
    expect(opening.open(sealed('early', older))).toEqual(opened('early', 1));
  });

  it('opens here where there is one processor, or no thread', async () => {
    const symmetricOpener = createSymmetricOpener(shared);
    const tenant = createIngestTenant([newest.scalar], { symmetricOpener });
    for (const world of [{ processors: 1 }, { entry: null }]) {
      const { opening } = start({ ...world, tenant });
      expect(opening.open(sealed('here'))).toEqual(opened('here', 1));
      expect(opening.open(body({ kid: 'acme' }))).toBeNull();
    }
  });

  it.each<[string, string]>([
    ['throws', 'throw new Error("of the thread")'],
    ['ends', 'process.exit(3)'],
  ])('loses no bundle with a thread that %s, and goes on here', async (_how, fails) => {
    const entry = failingThread(fails);
    // The first body that is not opened at once makes it fail already.
    const { opening, faults } = start({ entry });
    const texts = Array.from({ length: 200 }, (_, i) => `text ${i}`);
    const bodies = texts.map((text) => sealed(text, older));
    const answers = await vi.waitUntil(() => {
      const first = opening.open(Buffer.from('{}'));
      return first instanceof Promise && bodies.map((raw) => opening.open(raw));
    });
    expect(answers.every((answer) => answer instanceof Promise)).toBe(true);
    const results = await Promise.all(answers.map(async (answer) => answer));
    expect(results).toEqual(texts.map((text) => opened(text, 1)));
    expect(String(faults.at(-1))).toContain('has ended with');
    expect(opening.open(sealed('after', older))).toEqual(opened('after', 1));
  });

  it('fails the one bundle that cannot be opened here, and no other of the thread that ended', async () => {
    const entry = failingThread('process.exit(3)');
    const { opening } = start({ entry });
    const bodies = [sealed('a', older), sealed('b', older, 'damaged'), sealed('c', older)];
    const answers = await vi.waitUntil(() => {
      const first = opening.open(Buffer.from('{}'));
      return first instanceof Promise && bodies.map(async (raw) => opening.open(raw));
    });
    expect(await Promise.allSettled(answers)).toMatchObject([
      { value: opened('a', 1) },
      { reason: { message: 'of damaged alone' } },
      { value: opened('c', 1) },
    ]);
  });

  it('starts the thread again after it has ended, with the current keys', async () => {
    const flag = join(tempDir('thread'), 'ended-once');
    const endsOnce = `import { existsSync, writeFileSync } from 'node:fs';
      import { parentPort } from 'node:worker_threads';
      const flag = ${JSON.stringify(flag)};
      if (existsSync(flag)) await import(${JSON.stringify(BUILT.href)});
      else {
        writeFileSync(flag, '');
        parentPort.on('message', ({ bodies }) => { if (bodies) process.exit(3); });
        parentPort.postMessage([]);
      }`;
    const { opening, faults, setKeys } = await ready({ entry: scriptOf(endsOnce) });
    expect(await opening.open(sealed('lost', older))).toEqual(opened('lost', 1));
    setKeys(new Map([['later', keys]]));
    await expect.poll(() => opening.open(Buffer.from('{}')) instanceof Promise).toBe(true);
    // This thread has the older key of one tenant alone.
    expect(await opening.open(sealed('again'))).toEqual(opened('again'));
    const later = opening.open(sealed('again', newest, 'later'));
    expect(await later).toEqual({ ...opened('again'), kid: 'later' });
    expect(faults).toHaveLength(1);
  });

  it('is stopped without a fault, and opens here from then on', async () => {
    const { opening, faults } = await ready();
    await opening.stop();
    expect(opening.open(sealed('late', older))).toEqual(opened('late', 1));
    expect(faults).toEqual([]);
  });
});
