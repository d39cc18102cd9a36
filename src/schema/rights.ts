import { z } from 'zod';
import { isPlainText } from '../lib/text.ts';
import type { Answer } from './answer.ts';
import { principalIdSchema } from './bundle.ts';
import { requestIdSchema } from './responses.ts';

/** Bodies and answers of the privacy-rights API (contract section 6). */

/** Line breaks and tabs are text; other control characters, lone surrogates and NUL are not. */
const CONTROL = /(?![\n\r\t])\p{Cc}/u;

/** In code points, as a person counts them; not in UTF-16 units. */
const codePoints = (text: string): number => Array.from(text).length;

const prose = (min: number, max: number) =>
  z
    .string()
    .refine((text) => text.isWellFormed() && !CONTROL.test(text), 'text without control characters')
    .refine((text) => codePoints(text.trim()) >= min, `the text is too short: at least ${numberOf(min)}`)
    .refine((text) => codePoints(text) <= max, `the text is too long: at most ${numberOf(max)}`);

const numberOf = (n: number): string => `${n.toLocaleString('en')} character${n === 1 ? '' : 's'}`;

export const contestIdSchema = z
  .string()
  .regex(/^con_[0-9A-HJKMNP-TV-Z]{26}$/, 'a contestId: con_ and a ULID');

const statementSchema = prose(0, 4000);
export const reasonSchema = prose(20, 4000);

const identifier = (max: number) =>
  z.string().min(1).max(max).refine(isPlainText, 'well-formed text without control characters');

export const contestRequestSchema = z.strictObject({
  requestId: identifier(128),
  statement: statementSchema.optional(),
});
export type ContestFiling = Answer<typeof contestRequestSchema>;

/** The possible ends of a contest. */
export const OUTCOMES = ['upheld', 'overturned'] as const;
export const outcomeSchema = z.enum(OUTCOMES);
export type ContestOutcome = (typeof OUTCOMES)[number];

export const resolveRequestSchema = z.strictObject({
  contestId: identifier(128),
  outcome: outcomeSchema,
  reason: reasonSchema,
  /** The version that the reviewer saw. If it has changed since, the answer is 409 `stale-version`. */
  version: z.int().min(1).optional(),
});
type ResolveBody = Answer<typeof resolveRequestSchema>;

/** The decision of a reviewer about a contest. */
export interface Ruling extends Omit<ResolveBody, 'version'> {
  /** Null accepts any version. */
  readonly version: number | null;
}

export const eraseOwnRequestSchema = z.strictObject({ visitorId: identifier(256).optional() });

/** A dpo names exactly one target. */
export const eraseTargetSchema = z
  .strictObject({
    visitorId: identifier(256).optional(),
    requestId: identifier(256).optional(),
    durableId: identifier(256).optional(),
    principalId: principalIdSchema.optional(),
  })
  .refine(
    (body) => Object.values(body).filter((value) => value !== undefined).length <= 1,
    'name one target',
  );
export type EraseTargetBody = z.infer<typeof eraseTargetSchema>;

/** The token is checked before the action, and every problem with it is 401. */
export const meRequestSchema = z.looseObject({
  token: z.unknown().optional(),
  action: z.unknown().optional(),
});

/** Like `/me`: any problem with the token is 401. */
export const linkRequestSchema = z.strictObject({ token: z.unknown().optional() });

export const textSchema = prose(1, 4000);

/** More time for an answer, and why: the person reads it. */
export const extensionSchema = z.strictObject({
  days: z.coerce.number('a whole number of days').int().min(1).max(61),
  reason: textSchema,
});
export type Extension = z.infer<typeof extensionSchema>;

/** POST /me with `action: "contest"`, in addition to the token. */
export const caseFilingSchema = z.object({ statement: textSchema, email: z.email().max(254).optional() });
export type CaseFiling = Answer<typeof caseFilingSchema>;

/** A key that is misspelt in any way is 404, as a wrong one is. */
export const caseRequestSchema = z.strictObject({ caseKey: z.string() });
export const caseAnswerSchema = z.strictObject({ caseKey: z.string(), answer: textSchema });
export const contestAnswerSchema = z.strictObject({ contestId: identifier(128), answer: textSchema });
export type ContestAnswer = Answer<typeof contestAnswerSchema>;

export const contestStatusSchema = z.enum(['open', 'resolved']);
export const resolverSchema = z.object({ role: z.enum(['reviewer', 'dpo', 'operator']), ref: z.string() });
/** Four eyes: proposed by one reviewer, to be confirmed by another. */
export const proposalSchema = z.object({ outcome: outcomeSchema, by: z.string(), at: z.string() });

export const contestResponseSchema = z.object({
  /** A review of a refusal at the door; absent for a decision about a visit. */
  kind: z.literal('agent').optional(),
  contestId: contestIdSchema,
  requestId: requestIdSchema,
  status: contestStatusSchema,
  outcome: outcomeSchema.nullable(),
  statement: z.string().nullable(),
  filedAt: z.string(),
  dueAt: z.string(),
  /** The date that replaces `dueAt` once the period was extended. */
  extendedTo: z.string().nullable(),
  extensionReason: z.string().nullable(),
  version: z.int(),
  restricted: z.boolean(),
  question: z.string().nullable(),
  reason: z.string().nullable(),
  resolvedAt: z.string().nullable(),
  resolvedBy: resolverSchema.nullable(),
  proposed: proposalSchema.nullable(),
});
export type ContestResponse = Answer<typeof contestResponseSchema>;

/** The record with the fields that only its person may see. */
export const ownContestSchema = contestResponseSchema.extend({ answer: z.string().nullable() });

export const caseFiledSchema = contestResponseSchema
  .pick({ contestId: true, requestId: true, status: true, filedAt: true, dueAt: true })
  .extend({
    /** Shown once; absent where the request had a contest. */
    caseKey: z.string().optional(),
  });
export type CaseFiled = Answer<typeof caseFiledSchema>;

/** A complaint about how data are handled (contract-2 section 24). */
export const complaintStatusSchema = z.enum(['received', 'acknowledged', 'answered']);
export type ComplaintStatus = z.infer<typeof complaintStatusSchema>;

export const complaintResponseSchema = z.object({
  contestId: contestIdSchema,
  kind: z.literal('complaint'),
  requestId: requestIdSchema,
  status: complaintStatusSchema,
  statement: z.string().nullable(),
  filedAt: z.string(),
  acknowledgeBy: z.string(),
  acknowledgedAt: z.string().nullable(),
  question: z.string().nullable(),
  /** In words; null until it is answered. */
  outcome: z.string().nullable(),
  resolvedAt: z.string().nullable(),
  resolvedBy: resolverSchema.nullable(),
  version: z.int(),
});
export type ComplaintResponse = Answer<typeof complaintResponseSchema>;

export const complaintFiledSchema = complaintResponseSchema
  .pick({ contestId: true, kind: true, requestId: true, status: true, filedAt: true, acknowledgeBy: true })
  .extend({
    /** Shown once; absent where the request had a complaint. */
    caseKey: z.string().optional(),
  });
export type ComplaintFiled = Answer<typeof complaintFiledSchema>;

export const filedSchema = z.union([caseFiledSchema, complaintFiledSchema]);

/** A complaint that a person files with the key of another case of theirs. */
export const caseComplaintSchema = z.strictObject({
  caseKey: z.string(),
  statement: textSchema,
  email: z.email().max(254).optional(),
});

/** The decision of a case, as its case key shows it. */
export const caseDecisionSchema = z.object({
  class: z.string(),
  /** Null, and no rules, if the decision is no longer stored. */
  decidedAt: z.string().nullable(),
  rules: z.array(z.object({ id: z.string(), text: z.string() })),
});

/** A contest as its case key shows it (contract-2 section 15). */
export const caseResponseSchema = contestResponseSchema
  .pick({
    kind: true,
    contestId: true,
    status: true,
    filedAt: true,
    dueAt: true,
    extendedTo: true,
    extensionReason: true,
    statement: true,
    question: true,
  })
  .extend({
    askedAt: z.string().nullable(),
    answer: z.string().nullable(),
    outcome: outcomeSchema.nullable(),
    /** With `review.fourEyes`, the reasons of both reviewers. */
    reasons: z.array(z.string()),
    resolvedAt: z.string().nullable(),
    decision: caseDecisionSchema,
    /** The name of the site, for the page; gpd's own addition (ADR 0045). */
    site: z.string(),
    contact: z.string().nullable(),
    /** Only under rights.profile uk: the page then has a form for complaints. */
    takesComplaints: z.literal(true).optional(),
  });

/** A complaint as its case key shows it. */
export const caseComplaintResponseSchema = complaintResponseSchema
  .omit({ requestId: true, version: true, resolvedBy: true })
  .extend({
    askedAt: z.string().nullable(),
    answer: z.string().nullable(),
    decision: caseDecisionSchema,
    site: z.string(),
    contact: z.string().nullable(),
  });

export const anyCaseSchema = z.union([caseResponseSchema, caseComplaintResponseSchema]);

/**
 * Scopes of an erasure's receipt, in the order of contract 6.4; `storage` is the bytes in the database's own
 * files.
 */
export const ERASURE_SCOPES = [
  'sightings',
  'visitor-index',
  'decisions',
  'contests',
  'override',
  'links',
  'signal-summaries',
  'network-marks',
  'credentials',
  'consent',
  'backups',
  'storage',
] as const;

export const scopeSchema = z.object({
  scope: z.enum(ERASURE_SCOPES),
  action: z.enum(['erased', 'none', 'retained', 'pending', 'failed']),
  count: z.int(),
  basis: z.string().optional(),
  until: z.string().optional(),
});

export const erasureReceiptSchema = z.object({
  receiptId: z.string(),
  tenant: z.string(),
  subject: z.string(),
  requestedBy: z.enum(['subject', 'dpo', 'operator']),
  erasedAt: z.string(),
  scopes: z.array(scopeSchema),
  incomplete: z.boolean(),
});

/** `subject` is a keyed reference, `erasedAt` and `until` (when retained rows expire) RFC 3339. */
export type ErasureReceipt = Answer<typeof erasureReceiptSchema>;

/** The JSON of an erasure in the database. */
export const storedErasureSchema = z.object({
  scopes: z.array(scopeSchema),
  refs: z.array(z.object({ kind: z.enum(['durable', 'request', 'principal']), ref: z.string() })),
  keep: z.object({ openContests: z.boolean(), override: z.boolean() }),
  /** Keyed references of devices whose rows a legal hold kept. */
  held: z.array(z.string()).optional(),
});

export const forgottenSchema = z.object({
  forgotten: z.literal(true),
  /** Others may share the id, so only the request was erased. */
  shared: z.boolean(),
  scopes: z.array(scopeSchema),
  receiptId: z.string(),
});
export type Forgotten = Answer<typeof forgottenSchema>;

/** interface 2, TransparencyView. */
export const transparencyViewSchema = z.object({
  handle: z.string(),
  signals: z.array(
    z.object({
      name: z.string(),
      tier: z.string(),
      entropyBits: z.number().optional(),
      band: z.enum(['common', 'uncommon', 'rare', 'not enough data']).optional(),
      purpose: z.string(),
    }),
  ),
  totalEntropyBits: z.number(),
  purposes: z.array(z.string()),
  qualitativeOnly: z.boolean(),
});
export type TransparencyView = Answer<typeof transparencyViewSchema>;

export const linkResponseSchema = z.object({
  principalId: z.string(),
  requestId: z.string(),
  linkedAt: z.string(),
});

/** The parts of their data that a person gets (contract 6.5). */
export const exportSchema = z.looseObject({
  generatedAt: z.string(),
  decisions: z.array(z.record(z.string(), z.unknown())),
});

/** POST /me, by its action. */
export const tokenAnswerSchema = z.union([transparencyViewSchema, forgottenSchema, exportSchema]);
