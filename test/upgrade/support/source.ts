import { join } from 'node:path';
import { openDatabase } from '../../../src/db/db.ts';
import { HOUR } from '../../../src/lib/clock.ts';
import { sealVerdicts } from '../../../src/log/verdict-seal-store.ts';
import { REASON, startRights } from '../../rights/support/rights.ts';
import { KID } from '../../support/server.ts';

/** Rows that the real program wrote: bundles, consent, a contest and its outcome, an erasure, keys, webhooks, sealed hours. */

export type Row = Readonly<Record<string, unknown>>;

export interface Source {
  /** With the master key that opens the rows. */
  readonly dataDir: string;
  readonly kids: readonly string[];
  readonly rows: ReadonlyMap<string, readonly Row[]>;
  /** Of the acme's sealed hour. */
  readonly sealedHour: number;
  /** A device that has been here, and what it was called. */
  readonly known: { readonly device: string; readonly visitorId: string };
}

const DEVICE = 'b'.repeat(32);

async function live(): Promise<Omit<Source, 'rows' | 'sealedHour'>> {
  const rights = await startRights();
  const { gpd } = rights;
  const known = await rights.visit({ device: DEVICE });
  const visits = [];
  for (let i = 0; i < 6; i += 1) visits.push(await rights.visit({ bot: i % 2 === 1 }));
  await rights.visit({ target: rights.other, origin: 'https://other.example' });
  const [first, contested] = visits;
  const subject = await rights.as({ gpd_role: 'subject', sub: 'anna', gpd_visitor: contested?.visitorId });
  const filed = await rights.call('/privacy/contest', { requestId: contested?.requestId }, subject);
  const { contestId } = filed.json() as { contestId: string };
  const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita' });
  const body = { contestId, outcome: 'overturned', reason: REASON };
  const resolved = await rights.call('/privacy/contest/resolve', body, reviewer);
  if (resolved.status !== 200) throw new Error(`the contest was not resolved: ${resolved.text}`);
  await gpd.json(['erase', '--tenant', KID, '--visitor', first?.visitorId ?? '', '--yes']);
  await gpd.json(['apikeys', 'create', KID, '--scope', 'secret', '--name', 'backend']);
  await gpd.json(['webhooks', 'add', KID, 'https://shop.example/hooks']);
  await gpd.json(['keys', 'rotate', KID]);
  for (const principal of ['anna', 'bert']) {
    await gpd.json(['consent', 'grant', KID, principal, 'device-identification']);
  }
  await gpd.json(['consent', 'withdraw', KID, 'bert', 'device-identification']);
  await rights.stop();
  return {
    dataDir: gpd.dataDir,
    kids: [KID, 'other'],
    known: { device: DEVICE, visitorId: known.visitorId },
  };
}

/** Stops the program that made them, moves its verdicts three hours back and seals their hour. */
export async function makeSource(): Promise<Source> {
  const made = await live();
  const database = await openDatabase({ location: join(made.dataDir, 'gpd.db') });
  try {
    const now = Date.now();
    const sealedHour = Math.floor(now / HOUR) * HOUR - 3 * HOUR;
    await database.transaction(async (tx) => {
      await tx('decisions')
        .where({ kid: KID })
        .update({ decided_at: sealedHour + 1000 });
    });
    await sealVerdicts(database, KID, now);
    const tables = (await database
      .read('sqlite_master')
      .where({ type: 'table' })
      .whereNot('name', 'like', 'sqlite_%')
      .whereNot('name', 'like', 'knex_%')
      .pluck('name')) as string[];
    const rows = new Map<string, readonly Row[]>();
    for (const table of tables) rows.set(table, (await database.read(table)) as Row[]);
    return { ...made, rows, sealedHour };
  } finally {
    await database.close();
  }
}
