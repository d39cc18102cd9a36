import { describe, expect, it } from 'vitest';
import { deriveTenantKeys } from '../../src/keys/master-key.ts';
import { createFirstPurpose } from '../../src/tenants/purposes.ts';
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
    'https://',
    'https://shop.example/path',
    'https://shop.example?q',
    'https://shop.example#f',
    'https://user@shop.example',
    'ftp://shop.example',
    'javascript:alert(1)',
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
      'agents.policy': [],
      'agents.dryRun': false,
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
      'banner.siteName': '',
      'banner.policyUrl': '',
      'banner.imprintUrl': '',
      'banner.texts': {},
      'banner.refusalDays': 183,
    });
    expect([...TENANT_SETTING_NAMES].sort()).toEqual(Object.keys(tenantSettingsSchema.parse({})).sort());
  });

  it('come back the same when they are stored and read', () => {
    const settings = tenantSettingsSchema.parse({ origins: 'https://a.example/', 'ledger.public': 'true' });
    expect(tenantSettingsSchema.parse(JSON.parse(JSON.stringify(settings)))).toEqual(settings);
  });

  it.each<[string, unknown, unknown]>([
    ['origins', 'https://a.example, https://b.example:1', ['https://a.example', 'https://b.example:1']],
    ['origins', ['https://A.example/'], ['https://a.example']],
    ['origins', '', []],
    ['origins', 'https://a.example nonsense', 'refused'],
    ['origins', ['https://a.example', '*'], 'refused'],
    ['consent.basis', 'hope', 'refused'],
    ['consent.byAutomation', 'allow', 'refused'],
    ['transparency.retain', 'all', 'refused'],
    ['ledger.public', 'true', true],
    ['ledger.public', 'yes', 'refused'],
    ['review.fourEyes', 1, 'refused'],
    ['retention.days', '30', 30],
    ['retention.days', '0', 'refused'],
    ['retention.days', '3651', 'refused'],
    ['notice.contact', 'x'.repeat(4001), 'refused'],
    ['notice.kontakt', 'x', 'refused'],
    ['banner.title', ' Cookies? ', 'Cookies?'],
    ['banner.title', 'x'.repeat(201), 'refused'],
    ['banner.body', '\ud800', 'refused'],
    ['banner.policyUrl', 'https://shop.example/privacy', 'https://shop.example/privacy'],
    ['banner.policyUrl', 'javascript:alert(1)', 'refused'],
    ['banner.siteName', ' Lanterne ', 'Lanterne'],
    ['banner.siteName', 'x'.repeat(81), 'refused'],
    ['banner.siteName', 'a\nb', 'refused'],
    ['banner.imprintUrl', 'https://shop.example/imprint', 'https://shop.example/imprint'],
    ['banner.imprintUrl', 'javascript:alert(1)', 'refused'],
    ['banner.texts', '{"de":{"title":"Wahl"}}', { de: { title: 'Wahl' } }],
    ['banner.texts', '{"de":', 'refused'],
    ['banner.texts', '{"de-AT":{"title":"Wahl"}}', 'refused'],
    ['banner.texts', '{"de":{"titel":"Wahl"}}', 'refused'],
    ['banner.texts', '{"de":{"policyUrl":"data:text/html,x"}}', 'refused'],
    ['banner.texts', '{"de":{"imprintUrl":"data:text/html,x"}}', 'refused'],
    ['banner.refusalDays', '365', 365],
    ['banner.refusalDays', '730', 730],
    ['banner.refusalDays', '0', 'refused'],
    ['banner.refusalDays', '731', 'refused'],
    ['banner.refusalDays', '30.5', 'refused'],
    ['banner.texts', '{"__proto__":{"title":"x"}}', {}],
  ])('%s = %j', (name, value, expected) => {
    expect(setting(name, value)).toEqual(expected);
  });
});

const ROOT = Buffer.alloc(32, 7);

describe('deriveTenantKeys', () => {
  it('derives the same keys from the same root, for ever', () => {
    const keys = deriveTenantKeys(ROOT);
    // Stored durable ids and visitorIds depend on these keys: a change would forget every visitor.
    expect([keys.identity, keys.durable, keys.epoch(680)].map((key) => key.toString('hex'))).toEqual([
      '0671b5a3edabc997d8b6a14f498ed2a3e735824b377ef5a1fb8b2921e337045d',
      '2e1c7223d325fe7decde8505ffaa956dc0abb58d36df0086be257ae2ee9cc01d',
      '4fc8c5344e93a1b660ff2c75a793414daa152bc3dd327c8764e3b2f450e202b9',
    ]);
  });

  it('derives no two keys alike', () => {
    const all = [ROOT, Buffer.alloc(32, 8)].flatMap((root) => {
      const { identity, durable, population, epoch } = deriveTenantKeys(root);
      return [root, identity, durable, population, epoch(0), epoch(1), epoch(-1)];
    });
    expect(new Set(all.map((key) => key.toString('hex'))).size).toBe(all.length);
    for (const key of all) expect(key).toHaveLength(32);
  });
});

describe('createFirstPurpose', () => {
  it('is device identification, which a GPC signal opts out of', () => {
    const first = { id: 'device-identification', gpc: 'opt-out', lawfulBasis: 'consent' };
    expect(createFirstPurpose()).toMatchObject(first);
  });
});
