import { z } from 'zod';
import { principalIdSchema, purposeIdSchema } from './bundle.ts';

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

export const consentWriteSchema = z.strictObject({
  principalId: principalIdSchema,
  purposes: z
    .array(purposeIdSchema)
    .min(1)
    .max(50)
    .refine((purposes) => new Set(purposes).size === purposes.length, 'a purpose is named once'),
  policyVersion: z.int().min(0).max(2_147_483_647).optional(),
  gpc: z.boolean().optional(),
  /** base64url of the 32 bytes that a browser principal keeps. One that is none is a wrong one: 403, not 400. */
  principalSecret: z.string().optional(),
});
export type ConsentWrite = z.infer<typeof consentWriteSchema>;

export const principalRequestSchema = z.strictObject({ principalId: principalIdSchema });

export const emptyRequestSchema = z.strictObject({});

export const historyRequestSchema = z.strictObject({
  principalId: principalIdSchema,
  cursor: z
    .string()
    .regex(/^\d{1,16}$/)
    .optional(),
  limit: z.int().min(1).max(200).optional(),
});

/** Text that can be hashed and stored as it is: no lone surrogate, no NUL. */
const plainText = (min: number, max: number) =>
  z
    .string()
    .min(min)
    .max(max)
    .refine((text) => text.isWellFormed() && !text.includes('\0'), 'well-formed text without NUL');

const purposeSchema = z.strictObject({
  id: purposeIdSchema,
  title: plainText(1, 200),
  description: plainText(0, 2000).default(''),
  lawfulBasis: plainText(1, 100).default('consent'),
  gpc: z.enum(['opt-out', 'ignore']).default('opt-out'),
  ttlDays: z.int().min(1).max(36_500).default(180),
});
export const purposesRequestSchema = z.strictObject({ purposes: z.array(purposeSchema).min(1).max(100) });

export const policyRequestSchema = z.strictObject({
  text: plainText(1, 30_000),
  material: z.boolean(),
});

const proofRefSchema = z.object({ seq: z.int(), hash: z.string() });

export const decisionSchema = z.object({
  allowed: z.boolean(),
  reason: z.string(),
  proof: proofRefSchema,
  policyVersion: z.int(),
  expiresAt: z.string().nullable(),
});

export const batchResponseSchema = z.object({ results: z.array(decisionSchema.extend({ id: z.string() })) });

export const writeResponseSchema = z.object({
  entries: z.array(z.object({ purpose: z.string(), seq: z.int(), hash: z.string() })),
  seq: z.int(),
  hash: z.string(),
});
export type WriteResponse = z.infer<typeof writeResponseSchema>;

export const sessionResponseSchema = z.object({
  token: z.string(),
  principalId: z.string(),
  expiresAt: z.string(),
});
