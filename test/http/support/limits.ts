import type { ConsentLimits } from '../../../src/http/caller.ts';
import { unlimited, watchLimiter } from '../../../src/http/limiter.ts';

export const noLimits: ConsentLimits = {
  key: unlimited,
  client: watchLimiter(unlimited),
  withdrawal: watchLimiter(unlimited),
  newcomer: unlimited,
};
