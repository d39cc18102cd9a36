import { z } from 'zod';
import { isOneLine, parseUrl } from '../lib/text.ts';

/** What a tenant may say in its consent banner; the words of buttons are the banner's own. */

const text = (max: number) =>
  z
    .string()
    .trim()
    .max(max)
    .refine((value) => value.isWellFormed() && !value.includes('\0'), 'well-formed text without NUL');

/** A link that a person is sent to: nothing but http and https. */
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

/** By the primary subtag of BCP 47: `de`, not `de-AT`. */
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

/** From the command line it is the JSON text of the same. */
const texts = z.union([languages, z.string().max(200_000).transform(parseJson).pipe(languages)]);

export const bannerShape = {
  'banner.title': oneLine(200).default(''),
  'banner.body': text(2000).default(''),
  'banner.policyUrl': link.default(''),
  'banner.texts': texts.default({}),
} as const;
