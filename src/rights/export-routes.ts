import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import { createReadWhole } from '../http/limiter.ts';
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

/** Writes a long trail while it is read. */
async function sendDsar(response: Response, dsar: Dsar, maxMs: number): Promise<void> {
  response
    .status(200)
    .set({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  const deadline = setTimeout(() => response.destroy(), maxMs);
  await pipeline(Readable.from(dsarJson(dsar)), response).finally(() => clearTimeout(deadline));
}

/**
 * An export reads a whole trail, and strangers may ask for it: one at a time per client, two per tenant.
 * @returns a function that reads. It throws {Refusal} `rate-limited` before anything is read
 */
export function createExportPlaces(perTenant = AT_A_TIME.tenant) {
  const [ofClient, ofTenant] = [createReadWhole(AT_A_TIME.client), createReadWhole(perTenant)];
  return <Result>({ kid, client }: Exporter, work: () => Promise<Result>): Promise<Result> =>
    ofClient(client, () => ofTenant(kid, work, refusal), refusal);
}

/** @returns a function that finds and sends an export, and keeps its place until it is sent */
export function createSendExport(takePlace: TakePlace, maxMs = MAX_MS) {
  return (response: Response, exporter: Exporter, find: () => Promise<Dsar>): Promise<void> =>
    takePlace(exporter, async () => sendDsar(response, await find(), maxMs));
}
