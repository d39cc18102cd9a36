import { expect, it } from 'vitest';
import { DAY } from '../../src/lib/clock.ts';
import { createOwn } from '../cli/support/own.ts';
import { KID } from '../support/constants.ts';

// Guards against: the name of removed staff stayed for ever, and that of a person who never used the invitation.
it('retention deletes the names of removed staff and of people who never joined', async () => {
  const { gpd, query } = await createOwn();
  for (const name of ['Rosa Removed', 'Nora Never', 'Ada Active', 'Rita Recent'])
    expect(await gpd(`staff invite '${name}' --role dpo --tenant ${KID}`)).toMatchObject({ code: 0 });
  for (const name of ['Rosa Removed', 'Rita Recent'])
    expect(await gpd(`staff remove '${name}'`)).toMatchObject({ code: 0 });
  const old = Date.now() - 800 * DAY;
  await query(`UPDATE staff SET removed_at = ${old} WHERE name = 'Rosa Removed'`);
  await query(`UPDATE staff SET invite_until = ${old} WHERE name IN ('Nora Never', 'Ada Active')`);
  await query(`UPDATE staff SET joined_at = ${old}, invite_hash = NULL WHERE name = 'Ada Active'`);
  expect(await gpd('retention run --yes')).toMatchObject({ code: 0 });
  const rows = await query('SELECT name, removed_at IS NULL AS here FROM staff ORDER BY name');
  expect(rows).toEqual([
    { name: '', here: 0 },
    { name: 'Ada Active', here: 1 },
    { name: 'Rita Recent', here: 0 },
  ]);
});
