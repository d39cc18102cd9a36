import { describe, expect, it } from 'vitest';
import { purposesRequestSchema } from '../../src/schema/consent.ts';
import { tenantSettingsSchema } from '../../src/tenants/settings.ts';

/** Texts of one line: nothing in them ends the line, steers a terminal or turns what is read around. */

const REFUSED: readonly (readonly [string, string])[] = [
  ['an escape', '\u001b[2K'],
  ['a line feed', '\n'],
  ['a carriage return', '\r'],
  ['a C1 control', '\u009b1A'],
  ['delete', '\u007f'],
  ['a right-to-left override', '\u202e'],
  ['an isolate', '\u2066'],
  ['a mark of direction', '\u200f'],
  ['a line separator', '\u2028'],
  ['half a character', '\ud800'],
];

describe.each(['title', 'description', 'lawfulBasis'])('the %s of a purpose', (field) => {
  const accepts = (text: string): boolean =>
    purposesRequestSchema.safeParse({ purposes: [{ id: 'ads', title: 'Ads', [field]: text }] }).success;

  it.each(REFUSED)('holds no %s', (_name, text) => expect(accepts(`Ads${text}`)).toBe(false));

  it('holds letters of every script', () => {
    for (const text of ['Anzeigen für Müller', 'إعلانات', 'פרסומות', '広告 👩‍💻'])
      expect(accepts(text)).toBe(true);
  });
});

it.each(REFUSED)('a title of the banner holds no %s', (_name, text) => {
  const accepts = (title: string): boolean =>
    tenantSettingsSchema.safeParse({ 'banner.title': title }).success;
  expect(accepts('Ads')).toBe(true);
  expect(accepts(`Ads${text}.`)).toBe(false);
});
