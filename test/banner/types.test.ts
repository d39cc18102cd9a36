import { describe, expectTypeOf, it } from 'vitest';
import type * as agent from '../../src/agent/types.ts';
import type { Config } from '../../src/banner/config.ts';
import type * as banner from '../../src/banner/types.ts';
import type { BannerResponse } from '../../src/schema/banner.ts';
import type { ConsentReceipt } from '../../src/schema/bundle.ts';

type Mutable<T> = T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T;

/** The banner publishes types without zod; here the compiler holds them to the schema and to the agent. */
describe('the types of the banner', () => {
  it('say what the server answers', () => {
    expectTypeOf<Mutable<Config>>().toEqualTypeOf<BannerResponse>();
  });

  it('say what the agent and the server take', () => {
    expectTypeOf<banner.ConsentReceipt>().toEqualTypeOf<agent.ConsentReceipt>();
    // The banner omits the field that only the agent's gate reads.
    expectTypeOf<Mutable<Omit<banner.ConsentReceipt, 'overGpc'>>>().toEqualTypeOf<ConsentReceipt>();
  });
});
