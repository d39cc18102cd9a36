import type { ConsentRecord } from './record.ts';
import { choiceOf, granted, type Terms } from './status.ts';
import type { ConsentReceipt } from './types.ts';

/** The purpose of the agent; the proof of its grant is sent. */
const AGENT_PURPOSE = 'device-identification';

/** Nothing is granted: the server could not be asked. */
export const emptyReceipt = (gpc: boolean, now: number): ConsentReceipt => ({
  purposes: [],
  gpc,
  version: 0,
  issuedAt: now,
});

/** Version, time and proof are of one entry: the agent's grant, else the latest choice. */
function leading(terms: Terms, record: ConsentRecord, purposes: readonly string[]) {
  const leadingId = purposes.includes(AGENT_PURPOSE) ? AGENT_PURPOSE : purposes[0];
  if (leadingId !== undefined) return choiceOf(record, leadingId);
  const purposeIds = new Set(terms.config.purposes.map(({ id }) => id));
  const choices = Object.entries(record.choices).filter(([id]) => purposeIds.has(id));
  return choices.sort(([, a], [, b]) => b.at - a.at)[0]?.[1];
}

export function createReceipt(terms: Terms): ConsentReceipt {
  const { config, record, gpc, now } = terms;
  const empty = { ...emptyReceipt(gpc, now), version: config.policy.version };
  if (!record) return empty;
  const purposes = granted(terms).map(({ id }) => id);
  const lead = leading(terms, record, purposes);
  const over = gpc && purposes.includes(AGENT_PURPOSE) && choiceOf(record, AGENT_PURPOSE)?.overGpc;
  return {
    ...empty,
    ...(over && { overGpc: over }),
    purposes,
    principalId: record.principalId,
    ...(lead && { version: lead.version, issuedAt: lead.at, ...(lead.proof && { proof: lead.proof }) }),
  };
}
