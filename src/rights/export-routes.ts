import { createPlaces } from '../http/limiter.ts';
import type { Reply } from '../http/reply.ts';
import { MINUTE } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { type Dsar, dsarJson } from './dsar/service.ts';

/** A person's export (contract 6.5), by account or by transparency token. */

export interface Exporter {
  readonly kid: string;
  readonly client: string;
}

export type TakePlace = ReturnType<typeof createExportPlaces>;
export type SendExport = ReturnType<typeof createSendExport>;

const AT_A_TIME = { client: 1, tenant: 2 };
const RETRY_SECONDS = '10';
/** A client that reads slowly, or not at all, loses its place after this time. */
const MAX_MS = 2 * MINUTE;

const refusal = (): Refusal =>
  new Refusal('rate-limited', {
    headers: { 'retry-after': RETRY_SECONDS },
    details: ['one export at a time'],
  });

/** An export reads a whole trail, and strangers may ask for it: one at a time per client, two per tenant. */
export function createExportPlaces(perTenant = AT_A_TIME.tenant) {
  const [ofClient, ofTenant] = [createPlaces(AT_A_TIME.client), createPlaces(perTenant)];
  /** @returns gives the places back. @throws {Refusal} `rate-limited` before anything is read */
  return ({ kid, client }: Exporter): (() => void) => {
    const leaveClient = ofClient(client, refusal);
    try {
      const leaveTenant = ofTenant(kid, refusal);
      return () => {
        leaveTenant();
        leaveClient();
      };
    } catch (error) {
      leaveClient();
      throw error;
    }
  };
}

/** @returns a function that finds an export, whose place is kept until it is sent */
export function createSendExport(takePlace: TakePlace, maxMs = MAX_MS) {
  return async (exporter: Exporter, find: () => Promise<Dsar>): Promise<Reply> => {
    const onEnd = takePlace(exporter);
    try {
      const body = { parts: dsarJson(await find()), maxMs, onEnd };
      const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' };
      return { status: 200, headers, body };
    } catch (error) {
      onEnd();
      throw error;
    }
  };
}
