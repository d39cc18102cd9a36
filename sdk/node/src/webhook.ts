import { createHmac, timingSafeEqual } from 'node:crypto';
import { decodeBase64 } from './base64.ts';
import { isRecord, parseJson } from './body.ts';
import { ConsentError } from './errors.ts';

/** Verifies deliveries of gpd, which are signed as in Standard Webhooks (SPEC.md section 7). */

export interface WebhookOptions {
  /** `whsec_…` as `gpd webhooks add` printed it; several while a secret is replaced. */
  readonly secrets: string | readonly string[];
  /** The allowed difference of its time; by default 300. */
  readonly toleranceSeconds?: number | undefined;
  /** Epoch seconds; today's. */
  readonly now?: number | undefined;
}

export interface WebhookEvent {
  /** Equal for every delivery of one event. */
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly seq: number;
  readonly data: Readonly<Record<string, unknown>>;
}

export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

const PREFIX = 'whsec_';
const METHOD = 'verifyWebhook';
const UNPARSED = 'body is the raw bytes of the request, not what a parser made of them';

const refusal = (code: string): ConsentError => new ConsentError(METHOD, 'proof', { code });

const misconfigured = (hint: string): ConsentError => new ConsentError(METHOD, 'config', { hint });

/** @param secrets unknown, because an unset environment variable is undefined, whatever its type says */
function readSecrets(secrets: unknown): Buffer[] {
  const list: readonly unknown[] = Array.isArray(secrets) ? secrets : [secrets];
  const keys = list.map((secret) => {
    const isSecret = typeof secret === 'string' && secret.startsWith(PREFIX);
    const key = isSecret ? decodeBase64(secret.slice(PREFIX.length)) : null;
    return key && key.length >= 24 && key.length <= 64 ? key : null;
  });
  const validKeys = keys.filter((key) => key !== null);
  if (validKeys.length > 0 && validKeys.length === keys.length) return validKeys;
  throw misconfigured('secrets are whsec_ and base64 of 24 to 64 bytes');
}

/** Refuses NaN (from an unset variable), because every comparison with it is false. @throws {ConsentError} config */
function readWindow(options: WebhookOptions): { readonly now: number; readonly toleranceSeconds: number } {
  const { toleranceSeconds = 300, now = Math.floor(Date.now() / 1000) } = options;
  if (!Number.isFinite(toleranceSeconds) || toleranceSeconds < 0) {
    throw misconfigured('toleranceSeconds is a number of seconds, 0 or more');
  }
  if (!Number.isFinite(now)) throw misconfigured('now is a number of seconds since the epoch');
  return { now, toleranceSeconds };
}

/** The header must occur exactly once and must not be empty. */
function readHeader(headers: WebhookHeaders, name: string): string {
  const pairs = headers instanceof Headers ? [...headers] : Object.entries(headers);
  const values = pairs.filter(([key]) => key.toLowerCase() === name).flatMap(([, value]) => value ?? []);
  const [value] = values;
  if (typeof value !== 'string' || value === '' || values.length !== 1) throw refusal('missing-header');
  return value;
}

function isSigned(keys: readonly Buffer[], signed: Buffer, signatures: string): boolean {
  const macs = keys.map((key) => createHmac('sha256', key).update(signed).digest());
  const received = signatures
    .split(' ')
    .filter((item) => item.startsWith('v1,'))
    .map((item) => decodeBase64(item.slice('v1,'.length)));
  return received.some((mac) =>
    macs.some((expected) => mac?.length === expected.length && timingSafeEqual(mac, expected)),
  );
}

function readEvent(id: string, body: Buffer): WebhookEvent | null {
  const value = parseJson(body.toString());
  if (!isRecord(value)) return null;
  const { type, timestamp, seq, data } = value as Partial<Record<keyof WebhookEvent, unknown>>;
  if (typeof type !== 'string' || typeof timestamp !== 'string') return null;
  if (!Number.isSafeInteger(seq) || !isRecord(data)) return null;
  return { id, type, timestamp, seq: seq as number, data };
}

/**
 * @param body the raw bytes of the request, unparsed
 * @throws {ConsentError} proof, whose `code` names the failed check; config for a malformed secret, tolerance or time, or a parsed body
 */
export function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  options: WebhookOptions,
): WebhookEvent {
  const keys = readSecrets(options.secrets);
  const { now, toleranceSeconds } = readWindow(options);
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    readHeader(headers, name),
  ) as [string, string, string];
  if (!/^\d{1,15}$/.test(timestamp)) throw refusal('malformed-header');
  // A type says nothing to a framework that parsed the body.
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) throw misconfigured(UNPARSED);
  const bytes = Buffer.from(body as Uint8Array);
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), bytes]);
  if (!isSigned(keys, signed, signatures)) throw refusal('bad-signature');
  if (Math.abs(Number(timestamp) - now) > toleranceSeconds) throw refusal('stale');
  const event = readEvent(id, bytes);
  if (event === null) throw refusal('malformed-event');
  return event;
}

/** Signs a delivery as gpd does, for tests of a receiver. @throws {ConsentError} config for a malformed secret */
export function signWebhook(
  body: string | Uint8Array,
  {
    secret,
    id = 'evt_1',
    now = Math.floor(Date.now() / 1000),
  }: { secret: string; id?: string; now?: number },
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const [key = Buffer.alloc(0)] = readSecrets(secret);
  const signed = Buffer.concat([Buffer.from(`${id}.${now}.`), Buffer.from(body as Uint8Array)]);
  const mac = createHmac('sha256', key).update(signed).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': `${now}`, 'webhook-signature': `v1,${mac}` };
}
