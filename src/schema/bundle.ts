import { z } from 'zod';
import { decodeBase64Url } from '../lib/crypto.ts';
import { isPlainText } from '../lib/text.ts';

/**
 * The tenant's name: 1..64 of [A-Za-z0-9._-], so that it never holds the `|` of a durableId. Not `.` or `..`:
 * a client takes them out of a path (RFC 3986 section 5.2.4). Without a look-ahead, which not every generator
 * of SDKs knows.
 */
const KID_PATTERN = /^(?:[A-Za-z0-9_-]|\.[A-Za-z0-9_-]|\.\.[A-Za-z0-9._-])[A-Za-z0-9._-]*$/;
const KID_RULE = 'a kid is 1 to 64 of A-Z a-z 0-9 . _ -, and not . or ..';
export const kidSchema = z.string().max(64, KID_RULE).regex(KID_PATTERN, KID_RULE);

/** Largest accepted request body in bytes (interface section 8). */
export const MAX_BODY_BYTES = 32_768;

const BASE64 = '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$';

/** Documents text in canonical padded base64; decoding checks it. */
export const base64 = (length?: number) => ({
  ...(length === undefined ? {} : { minLength: length, maxLength: length }),
  pattern: BASE64,
  contentEncoding: 'base64',
});

/** Documents unpadded base64url; decoding checks it. */
export const base64Url = (length: number) => ({
  minLength: length,
  maxLength: length,
  pattern: '^[A-Za-z0-9_-]+$',
  contentEncoding: 'base64url',
});

/**
 * interface 2, SealedBundle. Whether the base64 is canonical and the lengths are right is decided where it is
 * decoded.
 */
export const sealedBundleSchema = z.strictObject({
  kid: kidSchema,
  iv: z.string().length(16).meta(base64()),
  ct: z.string().min(4).max(MAX_BODY_BYTES).meta(base64()),
  epk: z.string().length(88).meta(base64()).optional(),
});

export type SealedBundle = z.infer<typeof sealedBundleSchema>;

/** A purpose id (contract section 7). */
export const purposeIdSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,63}$/, 'a purpose id is a-z 0-9 - and at most 64 long');

/** 16 to 64 bytes in canonical base64url: two spellings of one nonce would be an unnoticed replay. */
const nonceSchema = z
  .string()
  .min(22)
  .max(86)
  .refine((text) => decodeBase64Url(text) !== null);
const epochMsSchema = z.int().min(0).max(8_640_000_000_000_000);

/** \p{Cc} for documents, in a dialect that every validator reads. */
const NO_CONTROL = String.raw`^[^\u0000-\u001f\u007f-\u009f]*$`;

/**
 * 1..512 characters of well-formed Unicode without control characters (contract section 7), in NFC: two
 * spellings of one name are one person, and a withdrawal in one reaches the grant in the other (ADR 0094).
 */
export const principalIdSchema = z
  .string()
  .normalize('NFC')
  .min(1)
  .max(512)
  .refine(isPlainText, 'well-formed text without control characters')
  .meta({ pattern: NO_CONTROL });

export const consentReceiptSchema = z.object({
  purposes: z.array(z.string().min(1).max(64)).max(100),
  gpc: z.boolean(),
  version: z.int().min(0).max(2_147_483_647),
  issuedAt: epochMsSchema,
  proof: z.object({ seq: z.int().min(0), hash: z.string().regex(/^[0-9a-f]{64}$/) }).optional(),
  principalId: principalIdSchema.optional(),
});

export type ConsentReceipt = z.infer<typeof consentReceiptSchema>;

/** A shop's name for what the verdict is for, such as an order (contract-2 section 20). No rule reads it. */
export const contextSchema = z.string().regex(/^[A-Za-z0-9._:-]{1,64}$/);

/**
 * The content of a decrypted bundle (contract section 2). `signals` is parsed separately: wrong types there
 * are no refusal.
 */
const plaintextShape = z.strictObject({
  v: z.literal(1),
  nonce: nonceSchema,
  clientTs: epochMsSchema,
  consent: consentReceiptSchema,
  signals: z.record(z.string(), z.unknown()),
  /** An earlier request of this session, which this bundle supersedes (contract-2 section 18). */
  after: z.string().max(64).optional(),
  context: contextSchema.optional(),
});

/** Compiled once, because every bundle is parsed by it. */
export const plaintextSchema = z.compile(plaintextShape);

export type Plaintext = z.infer<typeof plaintextShape>;
