import { describe, expect, it } from 'vitest';
import { originSchema, TENANT_SETTING_NAMES, tenantSettingsSchema } from '../../src/tenants/settings.ts';

const origin = (text: unknown): unknown => {
  const result = originSchema.safeParse(text);
  return result.success ? result.data : 'refused';
};

const setting = (name: string, value: unknown): unknown => {
  const result = tenantSettingsSchema.safeParse({ [name]: value });
  return result.success ? result.data[name as 'origins'] : 'refused';
};

describe('an origin', () => {
  it.each([
    ['https://shop.example', 'https://shop.example'],
    ['https://shop.example/', 'https://shop.example'],
    ['HTTPS://Shop.EXAMPLE', 'https://shop.example'],
    ['https://shop.example:443', 'https://shop.example'],
    ['https://shop.example:8443/', 'https://shop.example:8443'],
    ['http://localhost:3000', 'http://localhost:3000'],
    ['http://[::1]:3000', 'http://[::1]:3000'],
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
  ])('%s is %s', (text, expected) => {
    expect(origin(text)).toBe(expected);
  });

  it.each([
    '',
    'shop.example',
    '*',
    'null',
    'https://',
    'https://shop.example/path',
    'https://shop.example//',
    'https://shop.example?q',
    'https://shop.example#f',
    'https://user@shop.example',
    'https://user:secret@shop.example',
    'ftp://shop.example',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'data:text/html,x',
    7,
    null,
  ])('is not %j', (text) => {
    expect(origin(text)).toBe('refused');
  });
});

describe('tenant settings', () => {
  it('have the names and defaults of the contract', () => {
    expect(tenantSettingsSchema.parse({})).toEqual({
      origins: [],
      'consent.basis': 'asserted',
      'consent.byAutomation': 'note',
      'transparency.retain': 'none',
      'ledger.public': false,
      'review.fourEyes': false,
      'rights.profile': 'gdpr',
      'attest.rpId': '',
      'notify.email': [],
      'retention.days': 90,
      'notice.controller': '',
      'notice.contact': '',
      'notice.purposes': '',
      'notice.recipients': '',
      'notice.transfers': '',
      'notice.authority': '',
      'banner.title': '',
      'banner.body': '',
      'banner.policyUrl': '',
      'banner.texts': {},
    });
    expect([...TENANT_SETTING_NAMES].sort()).toEqual(Object.keys(tenantSettingsSchema.parse({})).sort());
  });

  it('come back the same when they are stored and read', () => {
    const settings = tenantSettingsSchema.parse({ origins: 'https://a.example/', 'ledger.public': 'true' });
    expect(tenantSettingsSchema.parse(JSON.parse(JSON.stringify(settings)))).toEqual(settings);
  });

  it.each<[string, unknown, unknown]>([
    [
      'origins',
      'https://a.example, https://b.example  https://c.example:1',
      ['https://a.example', 'https://b.example', 'https://c.example:1'],
    ],
    ['origins', ['https://A.example/'], ['https://a.example']],
    ['origins', '', []],
    ['origins', 'https://a.example nonsense', 'refused'],
    ['origins', ['https://a.example', '*'], 'refused'],
    ['consent.basis', 'ledger', 'ledger'],
    ['consent.basis', 'hope', 'refused'],
    ['consent.byAutomation', 'ask-again', 'ask-again'],
    ['consent.byAutomation', 'allow', 'refused'],
    ['transparency.retain', 'summary', 'summary'],
    ['transparency.retain', 'all', 'refused'],
    ['ledger.public', 'true', true],
    ['ledger.public', false, false],
    ['ledger.public', 'yes', 'refused'],
    ['review.fourEyes', 'true', true],
    ['review.fourEyes', 1, 'refused'],
    ['retention.days', '30', 30],
    ['retention.days', '0', 'refused'],
    ['retention.days', '3651', 'refused'],
    ['retention.days', '1.5', 'refused'],
    ['retention.days', 'long', 'refused'],
    ['notice.contact', 'dpo@shop.example', 'dpo@shop.example'],
    ['notice.contact', 'x'.repeat(4001), 'refused'],
    ['notice.kontakt', 'x', 'refused'],
    ['banner.title', ' Cookies? ', 'Cookies?'],
    ['banner.title', 'x'.repeat(201), 'refused'],
    ['banner.body', '\ud800', 'refused'],
    ['banner.policyUrl', 'https://shop.example/privacy', 'https://shop.example/privacy'],
    ['banner.policyUrl', 'javascript:alert(1)', 'refused'],
    ['banner.policyUrl', '/privacy', 'refused'],
    ['banner.texts', '', {}],
    ['banner.texts', '{"de":{"title":"Wahl"}}', { de: { title: 'Wahl' } }],
    [
      'banner.texts',
      { de: { purposes: { ads: { title: 'Werbung' } } } },
      { de: { purposes: { ads: { title: 'Werbung', description: '' } } } },
    ],
    ['banner.texts', '{"de":', 'refused'],
    ['banner.texts', '[]', 'refused'],
    ['banner.texts', '{"de-AT":{"title":"Wahl"}}', 'refused'],
    ['banner.texts', '{"de":{"titel":"Wahl"}}', 'refused'],
    ['banner.texts', '{"de":{"policyUrl":"data:text/html,x"}}', 'refused'],
    ['banner.texts', '{"__proto__":{"title":"x"}}', {}],
  ])('%s = %j', (name, value, expected) => {
    expect(setting(name, value)).toEqual(expected);
  });
});
