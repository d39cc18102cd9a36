import { describe, expect, it } from 'vitest';
import {
  type Generation,
  isLive,
  type KeyPlan,
  liveGenerations,
  MAX_LIVE,
  planDestroy,
  planGenerate,
  planRotate,
  planSweep,
} from '../../src/keys/generation.ts';
import { DAY } from '../../src/lib/clock.ts';
import { createGenerationRow, NOW } from '../support/make.ts';
import { fc } from '../support/property.ts';

function createFactory(now: number) {
  return (generation: number, state: 'staged' | 'published'): Generation =>
    createGenerationRow({
      generation,
      state,
      wrappedPrivate: `wrapped-${generation}`,
      createdAt: now,
      publishedAt: state === 'published' ? now : null,
    });
}

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
    expect(plan.ok && merge(keys, plan.changed).map((key) => key.state)).toEqual([
      'destroyed',
      'retiring',
      'retiring',
      'published',
    ]);
  });

  it('stops opening at once without grace', () => {
    const plan = planRotate([published(1)], make, { ...options, graceMs: 0 });
    expect(
      plan.ok && liveGenerations(merge([published(1)], plan.changed), NOW).map((key) => key.generation),
    ).toEqual([2]);
  });
});

describe('planDestroy', () => {
  const keys = [destroyed(1), retiring(2, NOW + DAY), published(3), staged(4)];

  it('overwrites a retiring or staged private key', () => {
    for (const generation of [2, 4]) {
      const plan = planDestroy(keys, generation, NOW);
      expect(plan).toMatchObject({
        ok: true,
        result: { generation, state: 'destroyed', wrappedPrivate: null },
      });
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
    const keys = [
      retiring(1, NOW - 1),
      retiring(2, NOW),
      retiring(3, NOW + 1),
      published(4),
      destroyed(5),
      staged(6),
    ];
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
          for (const key of plan.changed)
            expect(
              keys.find(({ generation }) => generation === key.generation)?.state,
              'stays destroyed',
            ).not.toBe('destroyed');
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
  it('is the published one, then the retiring ones from new to old', () => {
    const keys = [
      retiring(2, NOW + 1),
      staged(6),
      destroyed(1),
      retiring(4, NOW + 1),
      published(3),
      retiring(5, NOW),
    ];
    expect(liveGenerations(keys, NOW).map((key) => key.generation)).toEqual([3, 4, 2]);
  });

  it('leaves its argument as it is', () => {
    const keys = deepFreeze([retiring(1, NOW + 1), published(2)]);
    expect(liveGenerations(keys, NOW).map((key) => key.generation)).toEqual([2, 1]);
  });
});

describe('isLive', () => {
  it.each<[string, Generation, boolean]>([
    ['published', published(1), true],
    ['staged', staged(1), false],
    ['destroyed', destroyed(1), false],
    ['retiring, a millisecond left', retiring(1, NOW + 1), true],
    ['retiring, time is up', retiring(1, NOW), false],
    ['retiring without a date', { ...retiring(1, 0), retiresAt: null }, false],
  ])('%s', (_what, key, live) => {
    expect(isLive(key, NOW)).toBe(live);
  });
});
