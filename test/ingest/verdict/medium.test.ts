import { describe, expect, it } from 'vitest';
import { MEDIUM_RULES, WEAK_RULES } from '../../../src/ingest/verdict/medium-rules.ts';
import { changed, chrome } from './support/browsers.ts';
import { all, named, setFields } from './support/changes.ts';
import { MEDIUM_FIRES, PAIRED_FIRES, WEAK_FIRES } from './support/fires-medium.ts';

/** M: odd, yet people have it too, so one alone is unknown. W: it only moves the score. */

describe('M fires beside another', () => {
  it.each(PAIRED_FIRES)('%s: %s', (id, _name, make, change) => {
    const judged = changed(make, change);
    expect(judged.ids).toContain(id);
    expect(judged).toMatchObject({ inconsistency: 0, automation: false });
  });

  it('M10 beside M2 is automation: the worker answers for itself, as it never does under developer tools', () => {
    const judged = changed(chrome, setFields('tells', { cdp: true, debugsPageAlone: true }));
    expect(judged).toMatchObject({ class: 'undeclared_automation', strong: ['M2', 'M10'] });
  });

  it('but a debugger on page and worker is a person with developer tools open', () => {
    const tools = all(
      setFields('tells', { cdp: true, debugsPageAlone: false }),
      setFields('worker', { cdp: true }),
    );
    expect(changed(chrome, tools)).toMatchObject({ class: 'unknown', strong: ['M2'] });
  });
});

describe('M fires', () => {
  it.each(MEDIUM_FIRES)('%s: %s — and alone it is unknown', (id, _name, make, change) => {
    const judged = changed(make, change);
    expect(judged).toMatchObject({ class: 'unknown', strong: [id], inconsistency: 0, automation: false });
  });

  it('is shown for every rule', () => {
    const shown = [...MEDIUM_FIRES, ...PAIRED_FIRES].map(([id]) => id);
    expect(new Set(shown)).toEqual(new Set(MEDIUM_RULES.map(({ id }) => id)));
  });
});

describe('W fires', () => {
  it.each(WEAK_FIRES)('%s: %s — and leaves a person human', (id, _name, make, change) => {
    const judged = changed(make, change);
    expect(judged.ids).toContain(id);
    expect(judged).toMatchObject({ class: 'human', strong: [] });
    expect(judged.score).toBeGreaterThan(0);
    expect(judged.score).toBeLessThanOrEqual(0.1);
  });

  it('W9: an application by its name alone', () => {
    const slack =
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Slack/4.4 Chrome/141.0.0.0 Electron/38.0 Safari/537.36';
    expect(changed(chrome, named(slack, 'Win32'))).toMatchObject({ class: 'human', ids: ['W9'] });
  });

  it('is shown for every rule', () => {
    expect(new Set(WEAK_FIRES.map(([id]) => id))).toEqual(new Set(WEAK_RULES.map(({ id }) => id)));
  });
});
