import { z } from 'zod';
import { isOneLine } from '../lib/text.ts';
import type { Answer } from './answer.ts';
import { base64Url, principalIdSchema, purposeIdSchema } from './bundle.ts';
import { gpcPolicySchema } from './gpc.ts';

/** Bodies and answers of the consent API (contract section 7). */

export const canProcessRequestSchema = z.strictObject({
  principalId: principalIdSchema,
  purpose: purposeIdSchema,
  /** The decision must know the log at least up to this entry. */
  minSeq: z.int().min(0).optional(),
});

export const batchRequestSchema = z.strictObject({
  checks: z
    .array(
      z.strictObject({
        id: z.string().min(1).max(128),
        principalId: principalIdSchema,
        purpose: purposeIdSchema,
      }),
    )
    .min(1)
    .max(100),
});

/** The 32 bytes of a browser principal. A malformed one counts as wrong: 403, not 400. */
const principalSecretSchema = z.string().meta(base64Url(43));

export const consentWriteSchema = z.strictObject({
  principalId: principalIdSchema,
  purposes: z
    .array(purposeIdSchema)
    .min(1)
    .max(50)
    .refine((purposes) => new Set(purposes).size === purposes.length, 'a purpose is named once'),
  policyVersion: z.int().min(0).max(2_147_483_647).optional(),
  gpc: z.boolean().optional(),
  principalSecret: principalSecretSchema.optional(),
});
/**
 * `overGpc` is a specific yes over the signal: it names the signal and one purpose (contract-2 section 13).
 */
export const consentGrantSchema = consentWriteSchema
  .extend({
    overGpc: z.boolean().optional(),
    /** Seq of the `purpose.defined` entry that was shown, by purpose; the default is the present one. */
    definitions: z.record(purposeIdSchema, z.int().min(0)).optional(),
  })
  .refine(
    ({ overGpc, gpc, purposes }) => overGpc !== true || (gpc === true && purposes.length === 1),
    'overGpc needs gpc: true and exactly one purpose',
  );
export type ConsentWrite = z.infer<typeof consentGrantSchema>;

export const idempotencyKeySchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, '1 to 255 visible ASCII characters');

export const principalRequestSchema = z.strictObject({ principalId: principalIdSchema });
/** A publishable key has to show the secret; other credentials need none. */
export const stateRequestSchema = principalRequestSchema.extend({
  principalSecret: principalSecretSchema.optional(),
});
/** The principal of a browser, as the banner keeps it. */
export const joinRequestSchema = principalRequestSchema.extend({ principalSecret: principalSecretSchema });
/** `principalId` is the session's, `joined` the browser's. */
export const joinResponseSchema = z.object({
  principalId: z.string(),
  joined: z.string(),
  joinedAt: z.string(),
});
export const emptyRequestSchema = z.strictObject({});

export const historyRequestSchema = principalRequestSchema.extend({
  cursor: z
    .string()
    .regex(/^\d{1,16}$/, 'the nextCursor of the page before')
    .optional(),
  limit: z.int().min(1).max(200).optional(),
});

const text = (min: number, max: number) => z.string().min(min).max(max);

/** Text that can be hashed and stored as it is: no lone surrogate, no NUL. */
const plainText = (min: number, max: number) =>
  text(min, max).refine(
    (value) => value.isWellFormed() && !value.includes('\0'),
    'well-formed text without NUL',
  );

/** `isOneLine` for documents, in a dialect that every validator reads. */
const ONE_LINE = String.raw`^[^\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]*$`;

/** Shown in one line, in banners, tables and terminals. */
const oneLine = (min: number, max: number) =>
  text(min, max).refine(isOneLine, 'one line without control or bidi characters').meta({ pattern: ONE_LINE });

const purposeSchema = z.strictObject({
  id: purposeIdSchema,
  title: oneLine(1, 200),
  description: oneLine(0, 2000).default(''),
  lawfulBasis: oneLine(1, 100).default('consent'),
  gpc: gpcPolicySchema.default('opt-out'),
  ttlDays: z.int().min(1).max(36_500).default(180),
  /** False: the banner never asks for it. */
  banner: z.boolean().default(true),
});
/** False: the change asks nobody again, for instance because it corrects a typing error. */
const materialSchema = z.boolean();

const purposeChangeSchema = purposeSchema.extend({ material: materialSchema.optional() });
export const purposesRequestSchema = z.strictObject({
  purposes: z.array(purposeChangeSchema).min(1).max(100),
  /** The default for all purposes of this call. */
  material: materialSchema.default(true),
});

export const policyRequestSchema = z.strictObject({
  text: plainText(1, 30_000),
  material: z.boolean(),
});

export const hashSchema = z.string().regex(/^[0-9a-f]{64}$/);
export const entrySchema = z.object({ seq: z.int(), hash: hashSchema });

/** Why a decision is what it is. */
export const REASONS = [
  'unknown-purpose',
  'erased',
  'gpc-opt-out',
  'withdrawn',
  'denied',
  'expired',
  'doubted',
  'policy-outdated',
  'never-asked',
  'granted',
] as const;

export const consentReasonSchema = z.enum(REASONS);

/** The giver of a grant, by the verdict sent with it or the agent's signature; `unknown` without either. */
export const givenSchema = z.enum(['person', 'agent', 'automation', 'unknown']);
export type Given = Exclude<z.infer<typeof givenSchema>, 'unknown'>;

export const decisionSchema = z.object({
  allowed: z.boolean(),
  reason: consentReasonSchema,
  proof: entrySchema,
  policyVersion: z.int(),
  expiresAt: z.string().nullable(),
  given: givenSchema,
  /** Keyed reference of the principal, which the event `subject.erased` names. Only a secret key gets it. */
  subject: z.string().optional(),
});
export type DecisionAnswer = Answer<typeof decisionSchema>;

export const batchResponseSchema = z.object({ results: z.array(decisionSchema.extend({ id: z.string() })) });

/** A compact JWS that says which purposes a person has granted (contract-2 section 20). */
const signedStateSchema = z
  .string()
  .regex(/^[\w-]+\.[\w-]+\.[\w-]*$/, 'the cookie gpd_consent: a compact JWS');

export const writeResponseSchema = entrySchema.extend({
  entries: z.array(entrySchema.extend({ purpose: z.string() })),
  /** The person's state after this write. Only a publishable key or a session gets it. */
  state: signedStateSchema.optional(),
});
export type WriteResponse = Answer<typeof writeResponseSchema>;

/** A choice about a purpose. `gpc-opt-out`: the browser made it for the person. */
export const choiceSchema = z.enum(['granted', 'denied', 'withdrawn', 'gpc-opt-out']);
export type ConsentChoice = z.infer<typeof choiceSchema>;

export const stateResponseSchema = z.object({
  principalId: z.string(),
  subject: decisionSchema.shape.subject,
  /** Only a publishable key or a session gets it. */
  state: signedStateSchema.optional(),
  purposes: z.array(
    decisionSchema.omit({ subject: true }).extend({
      purpose: z.string(),
      choice: choiceSchema.nullable(),
      at: z.string().nullable(),
      /** The entry that defined the purpose in the words of this choice; missing where gpd wrote them. */
      definition: z.int().optional(),
      /** Only for a grant that overrules a GPC signal. */
      overGpc: z.literal(true).optional(),
    }),
  ),
});

export const refreshRequestSchema = z.strictObject({
  /** A state of any age. */
  state: signedStateSchema,
  /** The visitor's request carried Sec-GPC: the answer heeds it, and nothing is recorded. */
  gpc: z.boolean().default(false),
});
export const refreshedStateSchema = z.object({
  state: signedStateSchema,
  /** Ids of the granted purposes. */
  purposes: z.array(z.string()),
  /** The newest entry of the person's state; 0 without any. */
  seq: z.int(),
});

const stateKeySchema = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string().meta(base64Url(43)),
  y: z.string().meta(base64Url(43)),
  /** Thumbprint of the key (RFC 7638). */
  kid: z.string().meta(base64Url(43)),
  alg: z.literal('ES256'),
  use: z.literal('sig'),
});
export type StateKey = z.infer<typeof stateKeySchema>;
export const stateKeysSchema = z.object({
  keys: z.array(stateKeySchema),
  /** The tenant of the credential, to compare with the claim `kid`; missing without a credential. */
  tenant: z.string().optional(),
});

/** The fields to which an entry's body commits (contract section 7: detail). */
export const entryDetailSchema = z.object({
  /** The policy version that was shown; null for an entry without a policy. */
  policyVersion: z.int().nullable(),
  gpc: z.boolean(),
  /** The writer, for example the scope of the key. */
  source: z.string(),
  /** RFC 3339 in UTC, or null when it does not expire. */
  expiresAt: z.string().nullable(),
  /** The entry that defined the purpose in the words of this choice; missing where gpd wrote them. */
  definition: z.int().optional(),
  /** Only in a grant that overrules a GPC signal. */
  overGpc: z.literal(true).optional(),
  /** Only in an imported record of another system: when the choice was made, and its evidence. */
  recordedAt: z.string().optional(),
  evidence: z.string().optional(),
});

export const historyResponseSchema = z.object({
  principalId: z.string(),
  events: z.array(
    entryDetailSchema.extend({
      seq: z.int(),
      type: z.templateLiteral(['consent.', z.enum([...choiceSchema.options, 'doubted'])]),
      /** Only in `consent.doubted`: the class of the verdict; `human` where a review cleared the doubt. */
      class: z.enum(['declared_agent', 'undeclared_automation', 'human']).optional(),
      purpose: z.string(),
      time: z.string(),
    }),
  ),
  nextCursor: z.string().nullable(),
});
export type HistoryResponse = Answer<typeof historyResponseSchema>;

export const purposeAnswerSchema = z.object({
  id: purposeIdSchema,
  title: z.string(),
  description: z.string(),
  lawfulBasis: z.string(),
  gpc: gpcPolicySchema,
  ttlDays: z.int(),
  /** False: the banner never asks for it. */
  banner: z.boolean(),
});
export const purposesResponseSchema = z.object({ purposes: z.array(purposeAnswerSchema) });
export const savedPurposesSchema = purposesResponseSchema.extend({ entries: z.array(entrySchema) });

const policySchema = z.object({
  version: z.int(),
  sha256: hashSchema,
  material: z.boolean(),
  publishedAt: z.string(),
});
export const policiesResponseSchema = z.object({
  policies: z.array(policySchema.extend({ text: z.string() })),
});
export const publishedPolicySchema = policySchema.extend(entrySchema.shape);

export const sessionResponseSchema = z.object({
  token: z.string(),
  principalId: z.string(),
  /** Keyed reference of the principal, which the event `subject.erased` names. */
  subject: z.string(),
  expiresAt: z.string(),
});

/** Fields after ISO/IEC TS 27560:2023 as the W3C Data Privacy Vocabulary spells them. */
export const consentReceiptAnswerSchema = z.object({
  '@context': z.literal('https://w3id.org/dpv'),
  schemaVersion: z.literal('ISO/IEC TS 27560:2023'),
  receiptId: z.string(),
  issuedAt: z.string(),
  piiPrincipalId: z.string(),
  piiController: z.object({ name: z.string(), contact: z.string() }),
  recipients: z.string(),
  transfers: z.string(),
  supervisoryAuthority: z.string(),
  consent: entryDetailSchema.extend({
    status: choiceSchema,
    time: z.string(),
    /** Only of a grant: who gave it, as far as gpd knows now. */
    given: givenSchema.optional(),
    policySha256: hashSchema.nullable(),
    purpose: purposeAnswerSchema.omit({ gpc: true, ttlDays: true, banner: true }),
  }),
  proof: entrySchema.extend({ log: z.string() }),
});
export type ConsentReceiptAnswer = Answer<typeof consentReceiptAnswerSchema>;

export const issuedReceiptSchema = z.object({
  receipt: consentReceiptAnswerSchema,
  /** Compact JWS over the receipt, EdDSA under the key of the tenant's log. */
  jws: z.string(),
  /** The key; it is the one that the log's genesis names. */
  jwk: z.object({
    kty: z.literal('OKP'),
    crv: z.literal('Ed25519'),
    x: z.string().meta(base64Url(43)),
  }),
});
export type IssuedReceipt = Answer<typeof issuedReceiptSchema>;
