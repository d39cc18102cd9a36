import { makeNonceClaimer } from '../agents/store.ts';
import { makeBindingService } from '../attest/binding-service.ts';
import { type AttestDeps, makeAttestService } from '../attest/service.ts';
import { makeRecordAlone } from '../ingest/recorder-store.ts';
import { makeDaySalt } from '../ops/limits.ts';
import { openPresented } from '../rights/me/transparency-token.ts';
import type { Platform } from './platform.ts';

/** What the routes of attestation are made from. */
export function makeAttest(
  { epoch_days: epochDays }: Platform['config'],
  parts: Platform & Pick<AttestDeps, 'check' | 'issueToken'>,
) {
  const { database, serverSecret, clock, monotonic, log, metrics } = parts;
  const deps: Omit<AttestDeps, 'record'> = {
    ...parts,
    epochDays,
    openToken: (presented) => openPresented(serverSecret, clock(), presented),
    onOutcome(outcome, tenant) {
      metrics?.countAttestation(outcome);
      if (outcome === 'cloned') log.warn({ event: 'passkey-cloned', tenant });
    },
  };
  const service = makeAttestService({ ...deps, record: makeRecordAlone(database, monotonic) });
  const binding = makeBindingService({ ...deps, claim: makeNonceClaimer(database) });
  return { service, binding, markNetwork: makeDaySalt(serverSecret, 'gpd/network/v1', clock) };
}
