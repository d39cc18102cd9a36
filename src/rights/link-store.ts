import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { cellOf } from '../db/sql.ts';

/** What a person reaches: the requests that a principal has shown to be their own (contract 6.1), and the device behind a visitorId. */

/**
 * The data that a subject may reach (contract 6.1). A visitorId reaches everything of its durable id; a link reaches only the
 * linked requests: clients assert signals and identical phones share a durable id, so that a link must not open another
 * person's trail.
 */
export interface Reach {
  readonly kid: string;
  /** Null: the token has no visitorId, or nothing is stored about it. */
  readonly durable: string | null;
  /** The visitorId in the token. */
  readonly visitorId: string | null;
  readonly linked: ReadonlySet<string>;
  /** Keyed reference of the principal. */
  readonly principal: string | null;
  readonly principalId: string | null;
}

/** @returns a reach of these requests and nothing else */
export const reachOfRequests = (kid: string, requests: Iterable<string>): Reach => ({
  kid,
  durable: null,
  visitorId: null,
  linked: new Set(requests),
  principal: null,
  principalId: null,
});

export function reaches(
  reach: Reach,
  decision: { readonly requestId: string; readonly durable: string | null },
): boolean {
  const isOwnDevice = decision.durable !== null && decision.durable === reach.durable;
  return isOwnDevice || reach.linked.has(decision.requestId);
}

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
