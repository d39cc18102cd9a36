import { expect, it } from 'vitest';
import { Unavailable } from '../../src/lib/errors.ts';
import { describeFault } from '../../src/ops/log-service.ts';

const coded = (message: string, code = ''): Error => Object.assign(new Error(message), { code });

it('an outage is logged with the code of the driver', () => {
  const outage = new Unavailable('later', 1, { cause: coded('lock timeout', '55P03') });
  expect(describeFault(outage)).toMatchObject({ name: 'Unavailable', code: '55P03' });
  expect(describeFault(coded('broken', 'EPIPE'))).toMatchObject({ name: 'Error', code: 'EPIPE' });
});
