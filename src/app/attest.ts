import { type AttestDeps, makeAttestService } from '../attest/service.ts';
import { makeRecordAlone } from '../ingest/recorder-store.ts';
import { makeDaySalt } from '../ops/limits.ts';
import { openPresented } from '../rights/me/transparency-token.ts';
import type { Platform } from './platform.ts';

/** What the routes of passkeys are made from. */
export function makeAttest(
  { epoch_days: epochDays }: Platform['config'],
  parts: Platform & Pick<AttestDeps, 'check' | 'issueToken'>,
) {
  const { database, serverSecret, clock, monotonic, log, metrics } = parts;
  const service = makeAttestService({
    ...parts,
    epochDays,
    record: makeRecordAlone(database, monotonic),
    openToken: (presented) => openPresented(serverSecret, clock(), presented),
    onOutcome(outcome, tenant) {
      metrics?.countAttestation(outcome);
      if (outcome === 'cloned') log.warn({ event: 'passkey-cloned', tenant });
    },
  });
  return { service, markNetwork: makeDaySalt(serverSecret, 'gpd/network/v1', clock) };
}
