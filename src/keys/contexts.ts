import type { WrapContext } from './master-key.ts';

/** What every wrapped secret but the seal keys is bound to. */

export const SERVER_SECRET = 'server-secret';

/** Secrets of a tenant by purpose: everything else of it is derived from the root. */
export const ROOT_SECRET = 'root';
export const LEDGER_SECRET = 'ledger';
export const SYMMETRIC_SECRET = 'symmetric';

const bound = (table: string, tenant: string, purpose: string): WrapContext => ({
  table,
  tenant,
  purpose,
  generation: 1,
});

export const serverSecretContext: WrapContext = bound('meta', '', SERVER_SECRET);

/** The private key that signs exports for subjects. */
export const archiveSignerContext: WrapContext = bound('meta', '', 'archive-signer');

const boundTo = (table: string) => (kid: string, id: string) => bound(table, kid, id);

export const tenantSecretContext = boundTo('tenant_secrets');

export const webhookSecretContext = boundTo('webhooks');

/** Payloads that wait in the outbox, under the tenant's own key. */
export function outboxContext(kid: string): WrapContext {
  return bound('webhook_outbox', kid, 'payload');
}

/** What was written about a contest, under the tenant's own key. */
export const contestContext = boundTo('contests');

/** A principal's key, under the tenant's own key. */
export const principalKeyContext = boundTo('consent_principals');

/** A principal's id, under the tenant's own key. */
export const principalIdContext = boundTo('consent_openings');

export const sessionContext = boundTo('principal_sessions');
