import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../src/ingest/verdict/classify.ts';
import { fillNotices, type NoticeTenant, type NoticeTexts } from '../../src/rights/notice.ts';
import { createFirstPurpose, definedBy } from '../../src/tenants/purposes.ts';
import { tenantSettingsSchema } from '../../src/tenants/settings.ts';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const texts = JSON.parse(read('views/notice.en.json')) as NoticeTexts;

const firstPurpose = definedBy(1, createFirstPurpose(), undefined, true);

function fill(settings: object = {}, over: Partial<NoticeTenant> = {}): string {
  const tenant: NoticeTenant = {
    kid: 'shop',
    settings: tenantSettingsSchema.parse(settings),
    purposes: [firstPurpose],
    ...over,
  };
  return fillNotices(texts, tenant, DEFAULT_POLICY, 'https://id.shop.example')
    .flatMap(({ title, text }) => [title, ...text])
    .join('\n');
}

describe('the notices', () => {
  it('name no value that the settings do not give', () => {
    const names = JSON.stringify(texts.notices).matchAll(/\{([\w.]+)\}/g);
    const filled = fill();
    for (const [whole] of names) expect(filled).not.toContain(whole);
    expect(filled).not.toMatch(/undefined|\{|\}/);
  });

  it('say what the tenant has set', () => {
    const filled = fill({
      origins: ['https://shop.example'],
      'notice.controller': 'Shop Ltd',
      'notice.contact': 'privacy@shop.example',
      'notice.authority': 'the authority of Hesse',
      'notice.recipients': 'nobody else',
      'notice.transfers': 'none',
      'notice.purposes': 'to keep scalpers out',
      'retention.days': 30,
    });
    for (const sentence of [
      'Shop Ltd uses automated decision-making technology on https://shop.example. Its purpose is to keep scalpers out.',
      'gpd keeps for 30 days the class',
      'it lasts 180 days',
      `${DEFAULT_POLICY.rules.length} fixed rules decide automatically`,
      `policy ${DEFAULT_POLICY.version}`,
      'https://id.shop.example/my-data?kid=shop',
      'https://id.shop.example/case',
      'You may complain to the authority of Hesse.',
      '| consent is asked for | Device identification (device-identification, consent) |',
      'within a calendar month, which may be extended once by up to 61 days',
      'The properties are not stored.',
    ])
      expect(filled).toContain(sentence);
    expect(filled).not.toContain('[notice.');
  });

  it('name in brackets what is not set', () => {
    for (const name of ['controller', 'contact', 'authority', 'recipients', 'transfers'])
      expect(fill()).toContain(`[notice.${name}]`);
    expect(fill()).toContain('[origins]');
  });

  it.each([
    ['ccpa', 'within 45 days, which may be extended once by up to 45 days'],
    ['dpdp', 'A person answers within 90 days;'],
    ['uk', 'A person answers within a calendar month, which may be extended once by up to 61 days'],
  ])('give the periods of %s', (profile, sentence) => {
    expect(fill({ 'rights.profile': profile })).toContain(sentence);
  });

  it('say what the signal does, how consent is proven and what is counted', () => {
    const under = (gpc: 'opt-out' | 'ask' | 'ignore') => fill({}, { purposes: [{ ...firstPurpose, gpc }] });
    expect(under('opt-out')).toContain('Global Privacy Control counts as a refusal.');
    expect(under('ask')).toContain('counts as a refusal, unless you agree to this purpose alone');
    expect(under('ignore')).not.toContain('Global Privacy Control');
    expect(fill({ 'consent.basis': 'ledger' })).toContain('proven by an entry of the consent ledger');
    expect(fill({ 'transparency.retain': 'summary' })).toContain('keyed counts tell how rare each one is');
  });
});
