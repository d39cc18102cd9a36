import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { cellOf } from '../db/sql.ts';
import { unmarked } from '../ingest/erasing-store.ts';
import { withUpdates } from '../ingest/update-store.ts';

/** Which requests a principal has shown to be their own (contract 6.1), with the others of the same sessions. */

export async function linkedRequests(database: Database, kid: string, principal: string) {
  const ids = (await unmarked(database.read('links').where({ kid, principal }), 'links').pluck(
    'request_id',
  )) as string[];
  return [...(await withUpdates(database, kid, ids))].sort();
}

export interface Link {
  readonly kid: string;
  readonly requestId: string;
  readonly principal: string;
  readonly linkedAt: number;
}

/** The link as it is afterwards: an earlier one of the same request stays, no matter whose it is. */
export async function linkRequest(tx: Knex.Transaction, link: Link): Promise<Link> {
  const { kid, requestId, principal, linkedAt } = link;
  const row = { kid, request_id: requestId, principal, linked_at: linkedAt };
  await tx('links').insert(row).onConflict(['kid', 'request_id']).ignore();
  const found = (await tx('links').where({ kid, request_id: requestId }).first()) as typeof row;
  return { kid, requestId, principal: found.principal, linkedAt: Number(found.linked_at) };
}

/** The durable id that a visitorId of the current or an earlier epoch stands for. */
export async function durableOfVisitor(database: Database, kid: string, visitorId: string) {
  const rows = database.read('visitor_index').where({ kid, visitor_id: visitorId });
  return (await cellOf<string>(rows, 'durable')) ?? null;
}
