import { expect, it } from 'vitest';
import { createLoader } from '../../src/banner/load-extras.ts';

it('a script without an address is one whose second file did not come', async () => {
  const loadExtras = createLoader(() => {
    throw new TypeError('Invalid URL');
  });
  await expect(loadExtras()).resolves.toBeNull();
});
