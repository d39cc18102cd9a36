import { z } from 'zod';
import { sha256 } from '../lib/crypto.ts';
import { canonicalJson, type Json } from '../lib/json.ts';
import { parseUrl } from '../lib/text.ts';
import { bannerShape } from './banner.ts';

/** What `gpd tenants set KID key=value` takes (contract section 9), with the defaults. */

/** An origin as browsers send it: scheme, host and a non-default port. A trailing slash and letter case are forgiven. */
export const originSchema = z.string().transform((text, context) => {
  const url = parseUrl(text);
  const bare = url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
  if (bare) return url.origin;
  const meant = /^[a-z\d.-]+\.[a-z\d-]+(?::\d+)?\/?$/i.test(text) ? `; write https://${text}` : '';
  context.addIssue(`an origin is https://host or https://host:port, without a path${meant}`);
  return z.NEVER;
});

/** Browsers send an origin with its whole host, so none equals it. A stored one stays readable: new ones are refused. */
export const isWildcard = (origin: string): boolean => origin.includes('*');

const booleanWord = z.union(
  [z.boolean(), z.enum(['true', 'false']).transform((word) => word === 'true')],
  'write true or false',
);

/** A list as it is stored, or its words with commas or spaces. */
const listOf = <T extends z.ZodType>(item: T) =>
  z.preprocess(
    (value) => (typeof value === 'string' ? value.split(/[\s,]+/).filter((part) => part !== '') : value),
    z.array(item),
  );

const list = listOf(originSchema);

/** A domain, as the relying party of passkeys is named. */
const domain = z
  .string()
  .toLowerCase()
  .regex(/^(?:[a-z0-9-]{1,63}\.)+[a-z][a-z0-9-]{0,62}$|^$/, 'write a domain such as example.com');
const addresses = listOf(z.email('an e-mail address, or several with commas').max(254)).refine(
  (all) => all.length <= 20,
  'at most 20 addresses',
);

const notice = z.string().max(4000).default('');

/** Whose periods a due date follows. */
export const RIGHTS_PROFILES = ['gdpr', 'ccpa', 'dpdp'] as const;
export type RightsProfile = (typeof RIGHTS_PROFILES)[number];

export const tenantSettingsSchema = z.strictObject({
  origins: list.default([]),
  'consent.basis': z.enum(['asserted', 'ledger']).default('asserted'),
  'consent.byAutomation': z.enum(['note', 'ask-again', 'deny']).default('note'),
  'transparency.retain': z.enum(['none', 'summary']).default('none'),
  'ledger.public': booleanWord.default(false),
  'review.fourEyes': booleanWord.default(false),
  'rights.profile': z.enum(RIGHTS_PROFILES).default('gdpr'),
  'attest.rpId': domain.default(''),
  'retention.days': z.coerce.number('a whole number of days').int().min(1).max(3650).default(90),
  'notify.email': addresses.default([]),
  'notice.controller': notice,
  'notice.contact': notice,
  'notice.purposes': notice,
  'notice.recipients': notice,
  'notice.transfers': notice,
  'notice.authority': notice,
  ...bannerShape,
});

export type TenantSettings = z.infer<typeof tenantSettingsSchema>;

export const TENANT_SETTING_NAMES = Object.keys(tenantSettingsSchema.shape) as (keyof TenantSettings)[];

/** Settings whose words are no free text. */
const PLAIN: readonly string[] = [
  'origins',
  'consent.basis',
  'consent.byAutomation',
  'transparency.retain',
  'rights.profile',
  'attest.rpId',
];

/** A setting as the audit log tells it: free text, which may name people, by the beginning of its hash alone. */
export function settingForAudit(name: string, value: unknown): Json {
  if (typeof value === 'boolean' || typeof value === 'number' || PLAIN.includes(name)) return value as Json;
  const text = typeof value === 'string' ? value : canonicalJson(value as Json);
  return text === '' ? 'empty' : `sha256:${sha256(text).toString('hex').slice(0, 16)}`;
}

/** The banner's part of a tenant's settings, with its own names. */
export function bannerSettings(settings: TenantSettings) {
  return {
    title: settings['banner.title'],
    body: settings['banner.body'],
    policyUrl: settings['banner.policyUrl'],
    texts: settings['banner.texts'],
  };
}
