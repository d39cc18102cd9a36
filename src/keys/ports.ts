import type { Act } from '../lib/act.ts';
import type { Generation } from './generation.ts';
import type { KeyPlan } from './rotate.ts';

/**
 * Where generations lie. `change` reads a tenant's generations, hands them to the pure plan and writes what it says, all
 * in one transaction that excludes other writers of the same tenant; running servers see it within 5 s. A refused plan
 * writes nothing. What was published or destroyed is in the audit log. Unknown tenant: null.
 */
export interface SealKeyStore {
  list(kid: string): Promise<readonly Generation[]>;
  change(kid: string, plan: (keys: readonly Generation[]) => KeyPlan, by: Act): Promise<KeyPlan | null>;
}
