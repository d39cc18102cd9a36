/** The public names of the package. */
export { ConsentClient } from './client.ts';
export { ConsentError, ERROR_KINDS, type ErrorKind } from './errors.ts';
export type { ClientOptions } from './options.ts';
export {
  type Cosigner,
  type ProofExpectations,
  type ProvenEntry,
  verifyConsistency,
  verifyProof,
} from './proof.ts';
export type { HeaderSource, RequestLike } from './request.ts';
export type {
  CallOptions,
  Check,
  Consent,
  ConsentGrant,
  ConsentState,
  ConsentWrite,
  CurrentState,
  Decision,
  Health,
  History,
  HistoryEvent,
  KnownOutcome,
  KnownReason,
  MayOptions,
  OutcomeTime,
  Permissions,
  ProofRef,
  PurposeState,
  Receipt,
  ReportedOutcome,
  Session,
  Verdict,
  VisitorState,
  WriteOptions,
  WriteResult,
} from './types.ts';
export { VERSION } from './version.ts';
export { verifyWebhook, type WebhookEvent, type WebhookHeaders, type WebhookOptions } from './webhook.ts';
