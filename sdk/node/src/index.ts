/** The public names of the package. */
export {
  type AgentAnswer,
  type AgentOptions,
  agentMiddleware,
  type SignedRequest,
} from './agents.ts';
export type { CheckoutAdvice, CheckoutOptions } from './checkout.ts';
export { ConsentClient } from './client.ts';
export { ConsentError, type ErrorDetail, type ErrorKind } from './errors.ts';
export type { Consent } from './methods.ts';
export type { ClientOptions } from './options.ts';
export {
  type Cosigner,
  type ProofExpectations,
  type ProvenEntry,
  verifyConsistency,
  verifyProof,
} from './proof.ts';
export type { HeaderSource, RequestLike } from './request.ts';
export type * from './types.ts';
export { VERSION } from './version.ts';
export {
  signWebhook,
  verifyWebhook,
  type WebhookEvent,
  type WebhookHeaders,
  type WebhookOptions,
} from './webhook.ts';
export type {
  ErasureReceipt,
  ErasureScope,
  Join,
  KnownCode,
  Link,
  Policy,
  ProofRef,
  PublishedPolicy,
  Purpose,
  SavedPurposes,
} from './wire.ts';
export { ERROR_KINDS } from './wire.ts';
