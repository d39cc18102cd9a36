import type { Knex } from 'knex';
import { inChunks } from '../../lib/chunks.ts';
import { ERASURE_SCOPES } from '../../schema/rights.ts';
import { LED_TO } from '../subject-folds.ts';
import type { Scope } from './erasure.ts';

/** What legal holds keep of an erasure's rows: device by device, and not of the others that it was asked for with. */

export interface Holds {
  /** The basis on which these rows of the device stay; undefined: nothing keeps them. */
  readonly basis: (scope: Scope, durable: string | null | undefined) => string | undefined;
  readonly devices: ReadonlySet<string>;
  readonly scopes: (durable: string) => readonly Scope[];
  /** Devices whose whole erasure waits for a release. */
  readonly waiting: ReadonlySet<string>;
}

/** Holds of any of these kinds keep rows of this kind, in an erasure and in retention. */
export const heldWith = (scope: Scope): readonly Scope[] =>
  scope === 'visitor-index' ? [scope, ...LED_TO] : [scope];

interface HoldRow {
  readonly durable: string;
  readonly scope: Scope;
  readonly basis: string;
  readonly requested_by: string | null;
}

/** @param counts which holds count: one placed after the mark keeps nothing that was marked */
export async function holdsOn(
  tx: Knex,
  kid: string,
  durables: readonly string[],
  counts: (durable: string, scope: Scope) => boolean = () => true,
): Promise<Holds> {
  const found = new Map<string, string>();
  const devices = new Set<string>();
  const waiting = new Set<string>();
  await inChunks(durables, async (some) => {
    const rows = (await tx('legal_holds')
      .where({ kid })
      .whereIn('durable', [...some])) as HoldRow[];
    for (const row of rows.filter(({ durable, scope }) => counts(durable, scope))) {
      found.set(`${row.scope} ${row.durable}`, row.basis);
      devices.add(row.durable);
      if (row.requested_by !== null) waiting.add(row.durable);
    }
  });
  const basis: Holds['basis'] = (scope, durable) =>
    heldWith(scope)
      .map((held) => found.get(`${held} ${durable ?? ''}`))
      .find((known) => known !== undefined);
  const scopes = (durable: string): Scope[] =>
    ERASURE_SCOPES.filter((scope) => found.has(`${scope} ${durable}`));
  return { devices, scopes, waiting, basis };
}
