import { ConsentStateInvalid } from '../db/state-invalid.ts';
import { TenantGone } from '../lib/errors.ts';
import type { VisitorClass } from '../schema/responses.ts';
import { type ConsentEvent, isDoubted, type ProofRef } from './decide.ts';
import type { Marker } from './doubt-store.ts';
import type { ConsentStateReader } from './state-store.ts';
import type { ConsentTenant } from './tenant.ts';

/** What a verdict says of the grant that its bundle rode on (contract-2 section 18). */

interface Deps {
  readonly reader: ConsentStateReader;
  readonly marker: Marker;
  readonly tenantOf: (kid: string) => ConsentTenant;
  readonly onFault: (error: unknown) => void;
}

/** Only the client whose grant was answered knows the proof's hash: a bundle without it is about no grant. */
export interface GrantClaim {
  readonly kid: string;
  readonly principalId: string;
  readonly purpose: string;
  readonly proof: ProofRef;
}

export function makeGrants({ reader, marker, tenantOf, onFault }: Deps) {
  return {
    /** Null: the proof is not of the last event, or that is no grant. */
    async find({ kid, principalId, purpose, proof }: GrantClaim): Promise<ConsentEvent | null> {
      try {
        const { refOf, stateMac: mac } = tenantOf(kid);
        const principal = refOf(principalId);
        const { event } = await reader.read({ kid, principal, purpose, mac });
        const same = event?.seq === proof.seq && event.hash === proof.hash;
        return same && event.choice === 'granted' ? event : null;
      } catch (error) {
        if (error instanceof ConsentStateInvalid || error instanceof TenantGone) return null;
        throw error;
      }
    },
    /** The verdict is recorded: it is answered whatever comes of this. @returns whether the person is to be asked again */
    async note(
      { kid, principalId }: GrantClaim,
      grant: ConsentEvent,
      { class: by, at }: { readonly class: VisitorClass; readonly at: number },
    ): Promise<boolean> {
      if (by === 'unknown') return false;
      const tenant = tenantOf(kid);
      const principal = tenant.refOf(principalId);
      const mark = { tenant, principal, seq: grant.seq, principalId, at };
      if (by === 'human' ? grant.given === null : grant.doubtSeq === null)
        await marker.submit({ ...mark, detail: { class: by, source: 'ingest' } }).catch(onFault);
      return by === 'human' && isDoubted(grant) && tenant.settings['consent.byAutomation'] === 'ask-again';
    },
    idle: () => marker.idle(),
  };
}

export type Grants = ReturnType<typeof makeGrants>;
