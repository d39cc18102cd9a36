import { z } from 'zod';
import { base64, contextSchema } from './bundle.ts';

/** The answers of ingest, with their statuses (contract section 3). */

export const requestIdSchema = z
  .string()
  .regex(/^req_[0-9A-HJKMNP-TV-Z]{26}$/, 'a requestId: req_ and a ULID');

/** interface 2: the four classes. */
export const visitorClassSchema = z.enum(['human', 'declared_agent', 'undeclared_automation', 'unknown']);
export type VisitorClass = z.infer<typeof visitorClassSchema>;

/** interface 2 and 7: maps 1:1 to the status. */
export const INGEST_STATUS = {
  ok: 200,
  'consent-missing': 451,
  replay: 409,
  stale: 400,
  'decrypt-failed': 400,
  'unknown-key': 401,
  unknown: 500,
} as const;
export type IngestReason = keyof typeof INGEST_STATUS;

export const reasonSchema = z.enum(Object.keys(INGEST_STATUS) as [IngestReason, ...IngestReason[]]);

export const smartSignalsSchema = z.object({
  bot: z.boolean(),
  incognito: z.literal(false),
  tampered: z.boolean(),
  inconsistency: z.int().min(0),
});
export type SmartSignals = z.infer<typeof smartSignalsSchema>;

/** Contract 3.1: the GPC-honoured consent state that the verdict was computed under. */
export const consentStateSchema = z.object({
  purposes: z.array(z.string()),
  gpc: z.boolean(),
  gpcSource: z.enum(['none', 'header', 'bundle', 'both']),
  version: z.int(),
  issuedAt: z.int(),
  basis: z.enum(['asserted', 'proven']),
});
export type ConsentState = z.infer<typeof consentStateSchema>;

/** A passkey distinguishes this device from identical ones. It does not say who uses it. */
export const attestedSchema = z.object({ by: z.literal('passkey'), deviceBound: z.boolean() });
export type Attested = z.infer<typeof attestedSchema>;

export const ingestResponseSchema = z.object({
  class: visitorClassSchema,
  visitorId: z.string().nullable(),
  deviceId: z.null(),
  declaredAgentId: z.string().nullable(),
  confidence: z.number(),
  suspectScore: z.number().min(0).max(1).nullable(),
  smartSignals: smartSignalsSchema,
  needsAttestation: z.boolean(),
  consentState: consentStateSchema,
  reason: reasonSchema,
  requestId: z.string(),
  transparencyToken: z.string().optional(),
  attested: attestedSchema.optional(),
  /** A machine gave the consent of this visit, and `consent.byAutomation` is `ask-again`: show the banner. */
  askAgain: z.literal(true).optional(),
});
export type IngestResponse = z.infer<typeof ingestResponseSchema>;

/** interface 2, PubKeyResponse. */
export const pubKeyResponseSchema = z.object({
  kid: z.string(),
  alg: z.literal('ECDH-P256+HKDF-SHA256+AES-256-GCM'),
  /** An uncompressed point. */
  publicKey: z.string().meta(base64(88)),
});
export type PubKeyResponse = z.infer<typeof pubKeyResponseSchema>;

/** One rule that fired, with its weight and plain words. */
export const firedRuleSchema = z.object({ id: z.string(), weight: z.number(), text: z.string() });

/** Contract 3.6: the verdict for the tenant's backend. */
export const decisionResponseSchema = ingestResponseSchema
  .omit({ transparencyToken: true, askAgain: true })
  .extend({
    rules: z.array(firedRuleSchema),
    policyVersion: z.string(),
    decidedAt: z.string(),
    restricted: z.boolean(),
    /** The outcome of judging an agent's signature (docs/errors.md); absent without one. */
    signature: z.object({ status: z.string(), reason: z.string().nullable() }).optional(),
    /** A refusal at the door has the row of `agents.policy`, from 0, its action and its path. */
    door: z.object({ action: z.string(), row: z.number().nullable(), path: z.string() }).optional(),
    /** Keyed reference of this decision; the event `decision.erased` names it. */
    ref: z.string(),
    /** A later decision of the same browser session, which saw more than the page load. */
    supersededBy: requestIdSchema.optional(),
    /** The page's name for what the verdict is for; absent if its bundle had none. */
    context: contextSchema.optional(),
  });
export type DecisionResponse = z.infer<typeof decisionResponseSchema>;

/** With the page where the person can object, for a link on the site. */
export const heldDecisionSchema = decisionResponseSchema.extend({ contestUrl: z.string() });

/** An outcome that the tenant's backend reports for a decision. */
export const reportedOutcomeSchema = z.enum([
  'fraud',
  'chargeback',
  'passed-step-up',
  'false-alarm',
  'other',
]);
export type ReportedOutcome = z.infer<typeof reportedOutcomeSchema>;

export const outcomeRequestSchema = z.strictObject({
  outcome: reportedOutcomeSchema,
  /** When the outcome became known; by default the time of the report. */
  at: z.iso.datetime({ offset: true }).optional(),
});
export const outcomeResponseSchema = z.object({
  requestId: requestIdSchema,
  outcome: reportedOutcomeSchema,
  at: z.string(),
});

export const errorBodySchema = z.object({
  error: z.string(),
  message: z.string().optional(),
  details: z.array(z.string()).optional(),
});

/** A bundle is refused by the verdict or before it. */
export const ingestRefusalSchema = z.union([ingestResponseSchema, errorBodySchema]);

/** A message of JSON-RPC 2.0; the SDK of the Model Context Protocol reads `params` and writes the answer. */
export const mcpMessageSchema = z.strictObject({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string().max(64), z.int()]).optional(),
  method: z.string().max(64),
  params: z.record(z.string(), z.unknown()).optional(),
});
export const mcpAnswerSchema = z.looseObject({ jsonrpc: z.literal('2.0') });

/** `GET /` lists the service, then the path of each public page by its name. */
export const rootSchema = z.record(z.string(), z.string());
export const healthSchema = z.object({ status: z.literal('ok'), version: z.string() });
export const readySchema = z.object({
  status: z.enum(['ready', 'not-ready']),
  notReady: z.array(z.string()),
  /** Parts that work more slowly than they should; they do not make the node unready. */
  degraded: z.array(z.string()),
  /** Times of this node, RFC 3339; null: not since its start. Information only: neither makes it unready. */
  housekeeping: z.object({ completeAt: z.string().nullable(), retentionAt: z.string().nullable() }),
});

export const ceremonySchema = z.enum(['create', 'get']);
/** Like `/me`: any problem with the token is 401. */
export const attestOptionsRequestSchema = z.object({
  token: z.unknown().optional(),
  ceremony: ceremonySchema.default('create'),
});
/** WebAuthn JSON: PublicKeyCredentialCreationOptionsJSON or PublicKeyCredentialRequestOptionsJSON. */
export const attestOptionsSchema = z.object({
  ceremony: ceremonySchema,
  publicKey: z.record(z.string(), z.unknown()),
});
/** Every problem with the credential is `attestation-failed`. */
export const attestVerifyRequestSchema = z.object({
  token: z.unknown().optional(),
  credential: z.unknown().optional(),
});
