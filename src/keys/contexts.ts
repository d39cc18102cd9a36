import { type MasterKey, type WrapContext, WrongMasterKey } from './master-key.ts';

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

/** The second generation of a root says that all rows of its tenant carry their MACs (ADR 0042). */
export function tenantSecretContext(kid: string, purpose: string): WrapContext {
  return { ...bound('tenant_secrets', kid, purpose), generation: purpose === ROOT_SECRET ? 2 : 1 };
}

/** That of before the MACs among them. */
export const tenantSecretContexts = (kid: string, purpose: string): readonly WrapContext[] =>
  purpose === ROOT_SECRET
    ? [tenantSecretContext(kid, purpose), bound('tenant_secrets', kid, purpose)]
    : [tenantSecretContext(kid, purpose)];

/** With that of the contexts that it was wrapped under. @throws {WrongMasterKey} */
export function openUnder(masterKey: MasterKey, wrapped: string, contexts: readonly WrapContext[]) {
  for (const context of contexts) {
    try {
      return { secret: masterKey.unwrap(wrapped, context), context };
    } catch (error) {
      if (!(error instanceof WrongMasterKey)) throw error;
    }
  }
  throw new WrongMasterKey();
}

/** Of a root the context may still be that of before the MACs. @throws {WrongMasterKey} */
export const openTenantSecret = (
  masterKey: MasterKey,
  { kid, purpose, wrapped }: { readonly kid: string; readonly purpose: string; readonly wrapped: string },
) => openUnder(masterKey, wrapped, tenantSecretContexts(kid, purpose));

const boundTo = (table: string) => (kid: string, id: string) => bound(table, kid, id);

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
