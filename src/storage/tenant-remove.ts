import type { Database } from './db.ts';
import { bump } from './revision.ts';

/** Offboarding: everything of a tenant, the tables that hang on its row first, the rest in steps. */

/** Tables with data of a tenant, each with its key; what refers to `tenants` goes with its row. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  decisions: ['kid', 'request_id'],
  sightings: ['kid', 'durable'],
  visitor_index: ['kid', 'visitor_id'],
  overrides: ['kid', 'durable'],
  nonces: ['kid', 'nonce'],
  network_marks: ['day', 'kid', 'durable', 'network'],
  network_days: ['day', 'kid', 'durable'],
  network_totals: ['kid', 'day', 'shard'],
  shadow_counts: ['kid', 'day', 'policy_version', 'live_class', 'shadow_class'],
  ledger_entries: ['kid', 'seq'],
  ledger_blocks: ['kid', 'level', 'block'],
  consent_principals: ['kid', 'principal'],
  consent_state: ['kid', 'principal', 'purpose'],
  consent_openings: ['kid', 'seq'],
  principal_sessions: ['hash'],
  idempotency_keys: ['kid', 'caller', 'key'],
  verdict_seals: ['kid', 'hour'],
  erased_verdicts: ['kid', 'hour', 'position'],
  webhook_outbox: ['seq'],
  console_drafts: ['kid', 'actor', 'contest_id', 'kind'],
  job_failures: ['kid', 'job'],
  tallies: ['kid', 'kind', 'hour', 'name'],
  tally_marks: ['kid', 'kind'],
  rule_reviews: ['kid', 'rule'],
  key_traffic: ['kid', 'generation', 'day'],
  contests: ['contest_id'],
  links: ['kid', 'request_id'],
  audit_log: ['seq'],
  audit_seals: ['kid', 'hour'],
  erasures: ['receipt_id'],
  legal_holds: ['kid', 'durable', 'scope'],
  held_erasures: ['kid', 'durable', 'request_id'],
  signal_summaries: ['kid', 'request_id'],
  population: ['kid', 'signal', 'value'],
};
const STEP = 2000;

/** The names of all tables that hold rows of a tenant, for an export and for a test that none is forgotten. */
export const TENANT_DATA_TABLES: readonly string[] = Object.keys(TABLES);

async function emptyTable(database: Database, kid: string, table: string): Promise<number> {
  const key = TABLES[table] ?? [];
  let total = 0;
  for (;;) {
    const gone = await database.transaction(async (tx) => {
      const rows = (await tx(table)
        .where({ kid })
        .select([...key])
        .limit(STEP)) as Record<string, string | number>[];
      const values = rows.map((row) => key.map((name) => row[name] ?? null));
      if (values.length > 0)
        await tx(table)
          .whereIn([...key], values as (string | number)[][])
          .delete();
      return rows.length;
    });
    total += gone;
    if (gone < STEP) return total;
  }
}

/**
 * The tenant's row goes first, with its keys: running servers answer it no more while the rest follows. Interrupted, it
 * goes on when it is asked for again. Returns the rows by table, and whether there was anything at all.
 */
export async function removeTenant(
  database: Database,
  kid: string,
  {
    onGone = () => Promise.resolve(),
    onProgress = () => {},
  }: {
    /** The tenant's own row is gone, and the rest begins to follow. */
    readonly onGone?: () => Promise<void>;
    readonly onProgress?: (table: string) => void;
  } = {},
): Promise<Readonly<Record<string, number>> | null> {
  const existed = await database.transaction(async (tx) => {
    await bump(tx, 'tenants');
    return (await tx('tenants').where({ kid }).delete()) === 1;
  });
  if (existed) await onGone();
  const counts: Record<string, number> = {};
  for (const table of TENANT_DATA_TABLES) {
    onProgress(table);
    counts[table] = await emptyTable(database, kid, table);
  }
  return existed || Object.values(counts).some((count) => count > 0) ? counts : null;
}

/** Rows of a tenant as they are stored, for the export of an offboarding. */
export async function* tenantRows(
  database: Database,
  kid: string,
  table: string,
): AsyncGenerator<Readonly<Record<string, unknown>>> {
  const key = TABLES[table] ?? [];
  for (let after: readonly unknown[] | null = null; ; ) {
    const query = database.read(table).where({ kid });
    if (after !== null) {
      const places = key.map(() => '?').join(', ');
      query.whereRaw(`(${key.join(', ')}) > (${places})`, after as (string | number)[]);
    }
    const rows = (await query.orderBy([...key]).limit(STEP)) as Record<string, unknown>[];
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < STEP) return;
    after = key.map((name) => last[name]);
  }
}
