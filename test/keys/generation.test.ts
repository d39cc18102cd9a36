import { createECDH } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  createGeneration,
  destroyGeneration,
  type Generation,
  type KeyPlan,
  liveGenerations,
  MAX_LIVE,
  planDestroy,
  planGenerate,
  planRotate,
  planSweep,
  wrapContext,
} from '../../src/keys/generation.ts';
import { createMasterKey } from '../../src/keys/master-key.ts';
import { DAY } from '../../src/lib/clock.ts';
import { createGenerationRow, NOW, seededRandom } from '../support/make.ts';
import { fc } from '../support/property.ts';

const createFactory =
  (now: number) =>
  (generation: number, state: 'staged' | 'published'): Generation =>
    createGenerationRow({
      generation,
      state,
      wrappedPrivate: `wrapped-${generation}`,
      createdAt: now,
      publishedAt: state === 'published' ? now : null,
    });

const make = createFactory(NOW);
const published = (generation: number): Generation => make(generation, 'published');
const staged = (generation: number): Generation => make(generation, 'staged');
const retiring = (generation: number, retiresAt: number): Generation => ({
  ...make(generation, 'published'),
  state: 'retiring',
  retiresAt,
});
const destroyed = (generation: number): Generation => ({
  ...make(generation, 'published'),
  state: 'destroyed',
  wrappedPrivate: null,
  destroyedAt: NOW,
});

function merge(keys: readonly Generation[], changed: readonly Generation[]): Generation[] {
  const rows = new Map([...keys, ...changed].map((key) => [key.generation, key]));
  return [...rows.values()].sort((a, b) => a.generation - b.generation);
}

const options = { now: NOW, graceMs: 7 * DAY, force: false };

describe('planGenerate', () => {
  it('stages the next number', () => {
    expect(planGenerate([published(1)], make)).toEqual({ ok: true, changed: [staged(2)], result: staged(2) });
    expect(planGenerate([destroyed(5), published(2)], make)).toMatchObject({ result: { generation: 6 } });
    expect(planGenerate([], make)).toMatchObject({ result: { generation: 1 } });
  });

  it('stages one at a time', () => {
    expect(planGenerate([published(1), staged(2)], make)).toEqual({ ok: false, reason: 'already-staged' });
  });
});

describe('planRotate', () => {
  it('publishes a new generation and retires the old with its grace', () => {
    expect(planRotate([published(1)], make, options)).toEqual({
      ok: true,
      changed: [retiring(1, NOW + 7 * DAY), published(2)],
      result: published(2),
    });
  });

  it('publishes the staged one where there is one', () => {
    const plan = planRotate([published(1), staged(2)], createFactory(NOW - DAY), options);
    expect(plan).toMatchObject({ result: { generation: 2, state: 'published', publishedAt: NOW } });
    expect(plan.ok && plan.changed).toHaveLength(2);
  });

  const full = [retiring(1, NOW + 1), retiring(2, NOW + 2), published(3)];

  it('refuses a fourth live generation', () => {
    expect(planRotate(full, make, options)).toEqual({ ok: false, reason: 'too-many-live' });
    expect(planRotate([...full, staged(4)], make, options)).toEqual({ ok: false, reason: 'too-many-live' });
  });

  it('destroys the oldest when forced', () => {
    const plan = planRotate(full, make, { ...options, force: true });
    const keys = plan.ok ? merge(full, plan.changed) : [];
    expect(keys.map((key) => key.state)).toEqual(['destroyed', 'retiring', 'retiring', 'published']);
    expect(keys[0]).toMatchObject({ wrappedPrivate: null, retiresAt: null, destroyedAt: NOW });
    expect(keys[1]?.retiresAt).toBe(NOW + 2);
  });

  it('does not count, but destroys, a generation whose grace is over', () => {
    const keys = [retiring(1, NOW), retiring(2, NOW + 2), published(3)];
    const plan = planRotate(keys, make, options);
    const states = plan.ok && merge(keys, plan.changed).map((key) => key.state);
    expect(states).toEqual(['destroyed', 'retiring', 'retiring', 'published']);
  });

  it('stops opening at once without grace', () => {
    const plan = planRotate([published(1)], make, { ...options, graceMs: 0 });
    const keys = plan.ok ? merge([published(1)], plan.changed) : [];
    expect(liveGenerations(keys, NOW).map((key) => key.generation)).toEqual([2]);
  });
});

describe('planDestroy', () => {
  const keys = [destroyed(1), retiring(2, NOW + DAY), published(3), staged(4)];

  it('overwrites a retiring or staged private key', () => {
    for (const generation of [2, 4]) {
      const result = { generation, state: 'destroyed', wrappedPrivate: null };
      expect(planDestroy(keys, generation, NOW)).toMatchObject({ ok: true, result });
    }
  });

  it('refuses the published one, and one that never was', () => {
    expect(planDestroy(keys, 3, NOW)).toEqual({ ok: false, reason: 'is-published' });
    expect(planDestroy(keys, 5, NOW)).toEqual({ ok: false, reason: 'no-such-generation' });
  });

  it('changes nothing the second time', () => {
    expect(planDestroy(keys, 1, NOW + DAY)).toEqual({ ok: true, changed: [], result: destroyed(1) });
  });
});

describe('planSweep', () => {
  it('destroys what retired, to the millisecond', () => {
    const keys = [retiring(1, NOW - 1), retiring(2, NOW), retiring(3, NOW + 1), published(4), staged(6)];
    expect(planSweep(keys, NOW).map((key) => [key.generation, key.state, key.wrappedPrivate])).toEqual([
      [1, 'destroyed', null],
      [2, 'destroyed', null],
    ]);
  });
});

type Step =
  | readonly ['generate' | 'rotate' | 'force' | 'sweep' | 'wait', number]
  | readonly ['destroy', number];

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(fc.constant('generate' as const), fc.constant(0)),
  fc.tuple(fc.constantFrom('rotate' as const, 'force' as const), fc.integer({ min: 0, max: 10 * DAY })),
  fc.tuple(fc.constant('destroy' as const), fc.integer({ min: 1, max: 8 })),
  fc.tuple(fc.constant('sweep' as const), fc.constant(0)),
  fc.tuple(fc.constant('wait' as const), fc.integer({ min: 0, max: 5 * DAY })),
);

function planStep([kind, value]: Step, keys: readonly Generation[], now: number): KeyPlan | null {
  const maker = createFactory(now);
  if (kind === 'generate') return planGenerate(keys, maker);
  if (kind === 'rotate' || kind === 'force')
    return planRotate(keys, maker, { now, graceMs: value, force: kind === 'force' });
  if (kind === 'destroy') return planDestroy(keys, value, now);
  if (kind === 'sweep') {
    const changed = planSweep(keys, now);
    return { ok: true, changed, result: changed[0] ?? published(1) };
  }
  return null;
}

const deepFreeze = (keys: Generation[]): readonly Generation[] =>
  Object.freeze(keys.map((key) => Object.freeze(key)));

describe('the life of a tenant’s keys', () => {
  it('keeps its promises through any order of commands', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let keys = deepFreeze([published(1)]);
        let now = NOW;
        for (const one of steps) {
          if (one[0] === 'wait') now += one[1];
          const plan = planStep(one, keys, now);
          expect(planStep(one, keys, now), 'plans are pure').toEqual(plan);
          if (!plan?.ok) continue;
          for (const { generation } of plan.changed)
            expect(keys.find((key) => key.generation === generation)?.state).not.toBe('destroyed');
          const next = deepFreeze(merge(keys, plan.changed).map((key) => ({ ...key })));
          const live = liveGenerations(next, now);
          expect(live.length, 'live').toBeLessThanOrEqual(MAX_LIVE);
          expect(next.filter((key) => key.state === 'published').length, 'published').toBe(1);
          expect(next.filter((key) => key.state === 'staged').length, 'staged').toBeLessThanOrEqual(1);
          expect(next.map((key) => key.generation)).toEqual(next.map((_, i) => i + 1));
          for (const key of next) expect(key.wrappedPrivate === null).toBe(key.state === 'destroyed');
          expect(live[0]?.state).toBe('published');
          keys = next;
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('liveGenerations', () => {
  it('is the published one, then the retiring ones from new to old, to the millisecond', () => {
    const retired = [retiring(2, NOW + 1), retiring(4, NOW + 1), retiring(5, NOW)];
    const undated = { ...retiring(7, 0), retiresAt: null };
    const keys = [...retired, staged(6), destroyed(1), published(3), undated];
    expect(liveGenerations(deepFreeze(keys), NOW).map((key) => key.generation)).toEqual([3, 4, 2]);
  });
});

const masterKey = createMasterKey(Buffer.alloc(32, 1), seededRandom('test/keys/generation'));
const deps = { masterKey, now: NOW };

describe('createGeneration', () => {
  it('makes a pair whose private half is wrapped for its own row', () => {
    const key = createGeneration('acme', 3, 'published', deps);
    const scalar = masterKey.unwrap(key.wrappedPrivate ?? '', wrapContext('acme', 3));
    const ecdh = createECDH('prime256v1');
    ecdh.setPrivateKey(scalar);
    expect(scalar).toHaveLength(32);
    expect(key.publicKey).toBe(ecdh.getPublicKey('base64'));
    expect(key.publicKey).toHaveLength(88);
    expect(Buffer.from(key.publicKey, 'base64')[0]).toBe(4);
    for (const [kid, generation] of [
      ['acme', 4],
      ['other', 3],
    ] as const)
      expect(() => masterKey.unwrap(key.wrappedPrivate ?? '', wrapContext(kid, generation))).toThrow();
  });

  it('tells when it was published, if it was', () => {
    const times = { createdAt: NOW, retiresAt: null, destroyedAt: null };
    expect(createGeneration('acme', 1, 'published', deps)).toMatchObject({ ...times, publishedAt: NOW });
    expect(createGeneration('acme', 2, 'staged', deps)).toMatchObject({ ...times, publishedAt: null });
  });

  it('makes every pair anew', () => {
    const keys = Array.from({ length: 20 }, () => createGeneration('acme', 1, 'staged', deps).publicKey);
    expect(new Set(keys).size).toBe(20);
  });

  it('holds no private key outside the wrapping', () => {
    const key = createGeneration('acme', 1, 'published', deps);
    const scalar = masterKey.unwrap(key.wrappedPrivate ?? '', wrapContext('acme', 1));
    for (const encoding of ['base64', 'hex', 'base64url'] as const)
      expect(JSON.stringify(key)).not.toContain(scalar.toString(encoding));
  });
});

describe('destroyGeneration', () => {
  it('keeps what was public and its dates, and no private key', () => {
    const key = createGeneration('acme', 1, 'published', deps);
    expect(destroyGeneration(key, NOW + 5)).toEqual({
      ...key,
      state: 'destroyed',
      wrappedPrivate: null,
      retiresAt: null,
      destroyedAt: NOW + 5,
    });
  });
});
