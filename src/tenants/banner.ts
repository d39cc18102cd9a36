import { z } from 'zod';
import { isOneLine, parseUrl } from '../lib/text.ts';

/**
 * Schemas of the `banner.*` settings: the texts that a tenant may set in its
 * consent banner. The labels of the buttons are fixed, and are in src/banner.
 */

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

export const bannerShape = {
  'banner.title': oneLine(200).default(''),
  'banner.body': text(2000).default(''),
  'banner.policyUrl': link.default(''),
  'banner.texts': texts.default({}),
} as const;
