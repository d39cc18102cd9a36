import { z } from 'zod';
import { purposeAnswerSchema } from './consent.ts';

/** Schemas of the consent banner's requests and answers. */

export const languageSchema = z.string().regex(/^[a-z]{2,3}$/, 'two or three small letters, as in "de"');

export const themeSchema = z.string().regex(/^(?:light|dark)$/, 'light or dark');

/** A nonce (CSP 3, 2.3.1), or a word that the page's server replaces by one. */
export const nonceSchema = z
  .string()
  .regex(/^[\w+/-]{1,128}={0,2}$/, 'at most 128 characters of base64, as in the page’s policy');

export const markupQuerySchema = z.object({
  lang: languageSchema.default('en'),
  theme: themeSchema.optional(),
  nonce: nonceSchema.optional(),
});

export const bannerResponseSchema = z.object({
  kid: z.string(),
  policy: z.object({
    /** The policy version that a choice is made under; 0 if none was published. */
    version: z.int(),
    /** A choice under an older version than this is asked again. */
    material: z.int(),
    url: z.string(),
  }),
  /** The name in the banner's question; empty for "this site" (ADR 0100). */
  siteName: z.string(),
  /** Address of the imprint; empty for no link. */
  imprintUrl: z.string(),
  /** The tenant's words; empty for the banner's. */
  title: z.string(),
  body: z.string(),
  purposes: z.array(
    purposeAnswerSchema.omit({ lawfulBasis: true, banner: true }).extend({
      /** Places in the log; a choice names the `seq` that was shown (contract-2 section 22). */
      definition: z.object({
        /** The entry that defines the purpose in these words; null if gpd wrote them. */
        seq: z.int().nullable(),
        /** Choices made under this definition or an earlier one are asked again. */
        outdatedUntil: z.int().nullable(),
        /** Choices made under this definition or an earlier one were made while `gpc` was `opt-out`. */
        optOutUntil: z.int().nullable(),
        /** Choices made under this definition or an earlier one were made while `gpc` was at least `ask`. */
        askUntil: z.int().nullable(),
      }),
    }),
  ),
  /** The request carried Sec-GPC. */
  gpc: z.boolean(),
  /** The days for which a refusal is remembered, unless what is asked changes. */
  refusalDays: z.int(),
  /** The banner's words in the language; absent for English, which the script has. */
  words: z.record(z.string(), z.string()).optional(),
});
export type BannerResponse = z.infer<typeof bannerResponseSchema>;

export const embedManifestSchema = z.object({
  version: z.string(),
  /** The address that never changes its bytes. */
  src: z.string(),
  /** The value of the attribute `integrity`. */
  integrity: z.string(),
  languages: z.array(z.string()),
});
export type EmbedManifest = z.infer<typeof embedManifestSchema>;
