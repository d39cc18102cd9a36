import type { Reader } from '../db/engine.ts';
import type { DoubtDetail } from '../ledger/entries.ts';
import { chunksOf } from '../lib/collections.ts';
import type { Given } from '../schema/consent.ts';
import { isMacValid } from '../tenants/state-mac.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { GIVEN_BY } from './decide.ts';
import { type CommitmentRow, type OpenedBy, requireOpenings } from './openings-store.ts';
import { type StateColumns, toStateRow } from './state-store.ts';

/** Reads who gave a grant (contract-2 section 18), for its receipt. */

interface Grant {
  readonly seq: number;
  readonly detail: { readonly source?: unknown };
}

/**
 * The givers that the log names: an agent that wrote the grant itself, or the class of the verdict or ruling
 * about it.
 * @param size entries of the log that may be read
 * @throws {ConsentStateInvalid} for a forged doubt
 */
export async function readGivers(
  reader: Reader,
  tenant: OpenedBy,
  grants: readonly Grant[],
  size = Number.MAX_SAFE_INTEGER,
): Promise<ReadonlyMap<number, Given>> {
  const { read } = reader;
  const givers = new Map<number, Given>();
  for (const { seq, detail } of grants)
    if (String(detail.source).startsWith('agent:')) givers.set(seq, 'agent');
  for (const chunk of chunksOf(grants, 400)) {
    const laterChoice = read('consent_openings as n')
      .whereRaw('n.kid = g.kid AND n.principal = g.principal AND n.purpose = g.purpose')
      .whereRaw("n.seq > g.seq AND n.seq < d.seq AND n.choice <> 'doubted'");
    const doubts = (await read('consent_openings as g')
      .join('consent_openings as d', (on) =>
        on
          .on('d.kid', 'g.kid')
          .on('d.principal', 'g.principal')
          .on('d.purpose', 'g.purpose')
          .on('d.seq', '>', 'g.seq'),
      )
      .where({ 'g.kid': tenant.kid, 'd.choice': 'doubted' })
      .where('d.seq', '<', size)
      .whereIn(
        'g.seq',
        chunk.map(({ seq }) => seq),
      )
      .whereNotExists(laterChoice)
      .orderBy('d.seq')
      .select('d.*', { grant: 'g.seq' })) as readonly (CommitmentRow & { readonly grant: number })[];
    for (const { grant, detail } of await requireOpenings(reader, tenant, doubts))
      givers.set(Number(grant), GIVEN_BY[(JSON.parse(detail) as DoubtDetail).class]);
  }
  return givers;
}

/** `unknown`: no verdict says who gave it, or its state is not genuine. Null: a later choice replaced it. */
export async function readStateGiver(
  { read }: Reader,
  { kid, stateMac }: Pick<Tenant, 'kid' | 'stateMac'>,
  { principal, purpose, seq }: { readonly principal: string; readonly purpose: string; readonly seq: number },
): Promise<Given | 'unknown' | null> {
  const rows = await read('consent_state').where({ kid, principal, purpose, seq }).select();
  const [row] = rows as readonly (StateColumns & { readonly mac: string })[];
  if (!row) return null;
  const state = toStateRow(row);
  return isMacValid(row.mac, stateMac.ofState(principal, purpose, state)) && state.given
    ? state.given
    : 'unknown';
}
