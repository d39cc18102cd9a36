import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { cellOf } from '../db/sql.ts';

/**
 * Links: the requests that a principal has shown to be their own (contract 6.1), and the device behind a
 * visitorId.
 */

export async function linkedRequests({ read }: Database, kid: string, principal: string) {
  const links = read('links').where({ kid, principal });
  return (await links.orderBy('request_id').pluck('request_id')) as string[];
}

/** @returns the keyed reference of the principal that a request is linked to */
export async function linkedPrincipal(
  { read }: Database,
  kid: string,
  requestId: string,
): Promise<string | null> {
  return (await cellOf<string>(read('links').where({ kid, request_id: requestId }), 'principal')) ?? null;
}

export interface Link {
  readonly kid: string;
  readonly requestId: string;
  readonly principal: string;
  readonly linkedAt: number;
}

/** @returns the stored link: an earlier one of the same request stays, no matter whose it is */
export async function linkRequest(tx: Knex.Transaction, link: Link): Promise<Link> {
  const { kid, requestId, principal, linkedAt } = link;
  const row = { kid, request_id: requestId, principal, linked_at: linkedAt };
  await tx('links').insert(row).onConflict(['kid', 'request_id']).ignore();
  const storedLink = (await tx('links').where({ kid, request_id: requestId }).first()) as typeof row;
  return { kid, requestId, principal: storedLink.principal, linkedAt: Number(storedLink.linked_at) };
}

/** @returns the durable id that a visitorId of the current or an earlier epoch stands for */
export async function durableOfVisitor(database: Database, kid: string, visitorId: string) {
  const rows = database.read('visitor_index').where({ kid, visitor_id: visitorId });
  return (await cellOf<string>(rows, 'durable')) ?? null;
}
