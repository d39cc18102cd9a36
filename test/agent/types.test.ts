import { describe, expectTypeOf, it } from 'vitest';
import type { CollectedGroups } from '../../src/agent/collect/collect.ts';
import type * as agent from '../../src/agent/types.ts';
import type { ConsentReceipt, SealedBundle } from '../../src/schema/bundle.ts';
import type { ConsentState, IngestReason, IngestResponse, VisitorClass } from '../../src/schema/responses.ts';
import type { Signals } from '../../src/schema/signals.ts';

type Mutable<T> = T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T;

/** The agent publishes types without zod; here the compiler holds them to the schema. */
describe('the public types of the agent', () => {
  it('say what the server answers', () => {
    expectTypeOf<agent.VisitorClass>().toEqualTypeOf<VisitorClass>();
    expectTypeOf<agent.IngestReason>().toEqualTypeOf<IngestReason>();
    expectTypeOf<Mutable<agent.ConsentState>>().toEqualTypeOf<ConsentState>();
    expectTypeOf<Mutable<agent.IngestResponse>>().toEqualTypeOf<IngestResponse>();
  });

  it('say what the server takes', () => {
    expectTypeOf<Mutable<Omit<agent.ConsentReceipt, 'overGpc'>>>().toEqualTypeOf<ConsentReceipt>();
    expectTypeOf<agent.SealedBundle>().toExtend<SealedBundle>();
    expectTypeOf<Mutable<Omit<CollectedGroups, 'collector'>>>().toExtend<Signals>();
  });
});
