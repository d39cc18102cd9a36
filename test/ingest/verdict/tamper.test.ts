import { describe, expect, it } from 'vitest';
import { TAMPER_RULES } from '../../../src/ingest/verdict/tamper-rules.ts';
import { changed } from './support/browsers.ts';
import { TAMPER_FIRES } from './support/fires-tamper.ts';

/** T: the browser contradicts itself; each exemption is a browser that does so honestly. */

describe('fires', () => {
  it.each(TAMPER_FIRES)('%s: %s', (id, _name, make, change) => {
    const judged = changed(make, change);
    expect(judged.ids).toContain(id);
    expect(judged.class).not.toBe('human');
    expect(judged.automation).toBe(false);
    expect(judged.inconsistency).toBe(judged.rules.filter(({ kind }) => kind === 'T').length);
  });

  it.each(TAMPER_FIRES.filter(([id]) => ['T3', 'T5', 'T6', 'T8', 'T10', 'T12', 'N1'].includes(id)))(
    '%s alone is unknown and one contradiction: %s',
    (id, _name, make, change) => {
      const judged = changed(make, change);
      expect(judged).toMatchObject({ class: 'unknown', strong: [id], inconsistency: 1 });
    },
  );

  it('is shown for every rule', () => {
    expect(new Set(TAMPER_FIRES.map(([id]) => id))).toEqual(new Set(TAMPER_RULES.map(({ id }) => id)));
  });
});
