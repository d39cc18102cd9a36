import type { Knex } from 'knex';
import { inChunks } from '../lib/chunks.ts';
import { SCOPES, type Scope } from '../rights/erase.ts';

/** What legal holds keep of an erasure's rows: device by device, and not of the others that it was asked for with. */

export interface Holds {
  /** The basis on which these rows of the device stay; undefined: nothing keeps them. */
  readonly basis: (scope: Scope, durable: string | null | undefined) => string | undefined;
  /** The same for the visitorIds of the device. */
  readonly basisOfIndex: (durable: string) => string | undefined;
  readonly devices: ReadonlySet<string>;
  readonly scopes: (durable: string) => readonly Scope[];
  /** Devices whose whole erasure waits for a release. */
  readonly waiting: ReadonlySet<string>;
}

/** What a visitorId leads to: whoever kept that and not the way to it would have kept it from its owner. */
const LED_TO: readonly Scope[] = ['visitor-index', 'sightings', 'decisions', 'contests', 'override'];

interface HoldRow {
  readonly durable: string;
  readonly scope: Scope;
  readonly basis: string;
  readonly requested_by: string | null;
}

/** @param counts which holds count: one placed after the mark keeps nothing that was marked */
export async function holdsOn(
  tx: Knex.Transaction,
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
  const basis: Holds['basis'] = (scope, durable) => found.get(`${scope} ${durable ?? ''}`);
  const basisOfIndex = (durable: string): string | undefined =>
    LED_TO.map((scope) => basis(scope, durable)).find((found) => found !== undefined);
  const scopes = (durable: string): Scope[] => SCOPES.filter((scope) => basis(scope, durable) !== undefined);
  return { devices, scopes, waiting, basis, basisOfIndex };
}
