import type { Handlers } from '../http/register.ts';

export interface HealthDeps {
  readonly version: string;
  /** What is not ready, in words; empty when all is. */
  readonly notReady: () => readonly string[];
  /** When this node last swept and retained; told, and no reason to be not ready. */
  readonly swept: () => { readonly completeAt: string | null; readonly retentionAt: string | null };
}

/** GET /healthz has no work behind it; GET /readyz says what is not ready. */
export function healthRoutes(deps: HealthDeps): Handlers<'health' | 'ready'> {
  return {
    health: () => ({ status: 'ok', version: deps.version }),
    ready(_call, response) {
      const notReady = deps.notReady();
      const ready = notReady.length === 0;
      if (!ready) response.status(503);
      return { status: ready ? 'ready' : 'not-ready', notReady, housekeeping: deps.swept() };
    },
  };
}
