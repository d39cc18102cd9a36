import { z } from 'zod';
import { sha256 } from '../lib/crypto.ts';
import { tryOr } from '../lib/errors.ts';
import { canonicalJson, type Json } from '../lib/json.ts';
import { isOneLine, parseUrl } from '../lib/text.ts';
import { agentPolicySchema } from '../schema/agents.ts';

/**
 * The settings of a tenant (contract section 9), which `gpd
 * tenants set KID key=value` changes, with their defaults.
 */

/**
 * Normalises an origin as browsers send it: scheme, host and a
 * non-default port. A trailing slash and capitals are accepted.
 */
export const originSchema = z.string().transform((text, context) => {
  const url = parseUrl(text);
  const isBareOrigin = url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
  if (isBareOrigin) return url.origin;
  const hint = /^[a-z\d.-]+\.[a-z\d-]+(?::\d+)?\/?$/i.test(text) ? `; write https://${text}` : '';
  context.addIssue(`an origin is https://host or https://host:port, without a path${hint}`);
  return z.NEVER;
});

/**
 * A wildcard never matches, because browsers send the whole
 * host. New ones are refused; stored ones can still be read.
 */
export const isWildcard = (origin: string): boolean => origin.includes('*');

const booleanWord = z
  .union([z.boolean(), z.enum(['true', 'false']).transform((word) => word === 'true')], 'write true or false')
  .describe('true or false');

/** Accepts an array, as it is stored, or a text with commas or spaces between the items. */
const listOf = <T extends z.ZodType>(item: T) =>
  z.preprocess(
    (value) => (typeof value === 'string' ? value.split(/[\s,]+/).filter((part) => part !== '') : value),
    z.array(item),
  );

const text = (max: number) =>
  z
    .string()
    .trim()
    .max(max)
    .refine((value) => value.isWellFormed() && !value.includes('\0'), 'well-formed text without NUL');

/** People follow this link, so only http and https are accepted. */
const link = text(2000).refine(
  (value) => value === '' || /^https?:$/.test(parseUrl(value)?.protocol ?? ''),
  'an address is https://…',
);

const oneLine = (max: number) =>
  z.string().trim().max(max).refine(isOneLine, 'one line without control or bidi characters');

const purposeText = z.strictObject({ title: oneLine(200).min(1), description: oneLine(2000).default('') });

const languageText = z.strictObject({
  title: oneLine(200).optional(),
  body: text(2000).optional(),
  policyUrl: link.optional(),
  imprintUrl: link.optional(),
  purposes: z.record(z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/), purposeText).optional(),
});

/** The keys are primary subtags of BCP 47: `de`, not `de-AT`. */
const languages = z.record(
  z.string().regex(/^[a-z]{2,3}$/, 'a language is two or three small letters, as in "de"'),
  languageText,
);

function parseJson(value: string, context: z.RefinementCtx): unknown {
  try {
    return JSON.parse(value === '' ? '{}' : value) as unknown;
  } catch {
    context.addIssue('not valid JSON');
    return z.NEVER;
  }
}

/** The command line sets the texts as JSON, the database has them as an object. */
const texts = z.union([languages, z.string().max(200_000).transform(parseJson).pipe(languages)]);

/**
 * Schemas of the `banner.*` settings: the texts that a tenant may set in its consent banner, and the days for
 * which a refusal is remembered. The labels of the buttons are fixed, and are in src/banner.
 */
const bannerShape = {
  'banner.title': oneLine(200).describe('one line of up to 200 characters').default(''),
  'banner.body': text(2000).describe('text of up to 2,000 characters').default(''),
  'banner.siteName': oneLine(80)
    .describe('the name that people know the site by, up to 80 characters')
    .default(''),
  'banner.policyUrl': link.describe('address of a page, https://…').default(''),
  'banner.imprintUrl': link.describe('address of a page, https://…').default(''),
  'banner.texts': texts.describe('JSON: texts by language').default({}),
  'banner.refusalDays': z.coerce
    .number('a whole number of days')
    .int()
    .min(1)
    .max(730)
    .describe('days, 1 to 730')
    .default(183),
} as const;

const originList = listOf(originSchema).describe('origins of the pages, separated by commas');

/** The relying party id of passkeys is a domain (https://www.w3.org/TR/webauthn-3/#rp-id). */
const domainText = z
  .string()
  .toLowerCase()
  .regex(/^(?:[a-z0-9-]{1,63}\.)+[a-z][a-z0-9-]{0,62}$|^$/, 'write a domain such as example.com')
  .describe('a domain: the pages’ own or a parent');
const emailList = listOf(z.email('an e-mail address, or several with commas').max(254))
  .refine((all) => all.length <= 20, 'at most 20 addresses')
  .describe('up to 20 e-mail addresses, separated by commas');

const noticeText = z.string().max(4000).describe('text of up to 4,000 characters').default('');

/** The laws whose periods a due date can follow. */
export const RIGHTS_PROFILES = ['gdpr', 'ccpa', 'dpdp', 'uk'] as const;
export type RightsProfile = (typeof RIGHTS_PROFILES)[number];

/** The command line sets the policy as JSON, the database has it as a list. */
const agentPolicy = z
  .preprocess((value) => {
    if (typeof value !== 'string') return value;
    return value === '' ? [] : tryOr(() => JSON.parse(value) as unknown, value);
  }, agentPolicySchema)
  .describe('JSON: rules for agents, the first that matches decides');

export const tenantSettingsSchema = z.strictObject({
  origins: originList.default([]),
  'consent.basis': z.enum(['asserted', 'ledger']).default('asserted'),
  'consent.byAutomation': z.enum(['note', 'ask-again', 'deny']).default('note'),
  'transparency.retain': z.enum(['none', 'summary']).default('none'),
  'ledger.public': booleanWord.default(false),
  'review.fourEyes': booleanWord.default(false),
  'rights.profile': z.enum(RIGHTS_PROFILES).default('gdpr'),
  'attest.rpId': domainText.default(''),
  'retention.days': z.coerce
    .number('a whole number of days')
    .int()
    .min(1)
    .max(3650)
    .describe('days, 1 to 3650')
    .default(90),
  'notify.email': emailList.default([]),
  'notice.controller': noticeText,
  'notice.contact': noticeText,
  'notice.purposes': noticeText,
  'notice.recipients': noticeText,
  'notice.transfers': noticeText,
  'notice.authority': noticeText,
  'agents.policy': agentPolicy.default([]),
  'agents.dryRun': booleanWord.default(false),
  ...bannerShape,
});

export type TenantSettings = z.infer<typeof tenantSettingsSchema>;

export const TENANT_SETTING_NAMES = Object.keys(tenantSettingsSchema.shape) as (keyof TenantSettings)[];

/** Says in words for a person which values a setting takes, and its default as it is typed. */
export function describeSetting(name: keyof TenantSettings): {
  readonly takes: string;
  readonly fallback: string;
} {
  const inner = tenantSettingsSchema.shape[name].unwrap();
  const fallback: unknown = tenantSettingsSchema.parse({})[name];
  return {
    takes: inner instanceof z.ZodEnum ? inner.options.join(' | ') : (inner.description ?? ''),
    fallback: typeof fallback === 'object' ? '' : `${fallback as string | number | boolean}`,
  };
}

/** These settings have no free text, so the audit log shows their values. */
const AUDITED_IN_FULL: readonly string[] = [
  'origins',
  'consent.basis',
  'consent.byAutomation',
  'transparency.retain',
  'rights.profile',
  'attest.rpId',
  'agents.policy',
];

/** Free text may name people, so the audit log only shows the beginning of its hash. */
export function redactForAudit(name: string, value: unknown): Json {
  if (typeof value === 'boolean' || typeof value === 'number' || AUDITED_IN_FULL.includes(name))
    return value as Json;
  const text = typeof value === 'string' ? value : canonicalJson(value as Json);
  return text === '' ? 'empty' : `sha256:${sha256(text).toString('hex').slice(0, 16)}`;
}

export function pickBannerSettings(
  settings: Pick<TenantSettings, Extract<keyof TenantSettings, `banner.${string}`>>,
) {
  return {
    title: settings['banner.title'],
    body: settings['banner.body'],
    policyUrl: settings['banner.policyUrl'],
    siteName: settings['banner.siteName'],
    imprintUrl: settings['banner.imprintUrl'],
    texts: settings['banner.texts'],
  };
}
