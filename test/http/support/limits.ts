import { unlimited, watchLimiter } from '../../../src/http/limiter.ts';
import type { ConsentLimits } from '../../../src/http/register.ts';

export const noLimits: ConsentLimits = {
  key: unlimited,
  client: watchLimiter(unlimited),
  withdrawal: watchLimiter(unlimited),
  newcomer: unlimited,
};
