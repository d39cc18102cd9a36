import { connect, isIP, type Socket } from 'node:net';
import type { createTransport } from 'nodemailer';
import { SECOND } from '../lib/clock.ts';
import { isLoopback } from '../lib/ip.ts';
import { checkLiteralHost, EgressRefused, guardedLookup } from './guard.ts';
import { anywhere, onlyLoopback } from './send.ts';

/**
 * Sends mail through the operator's relay. Without TLS it connects only to a loopback address, whatever a
 * name resolves to.
 */

export type Relay = ReturnType<typeof parseRelay>;

export interface Mail {
  readonly from: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** Stays equal for every attempt, so that a relay or reader recognises a second copy. */
  readonly messageId: string;
  readonly date: Date;
}

/** Shorter than the lease of an event in the outbox. */
const PATIENCE_MS = 45 * SECOND;
const STEP_MS = 20 * SECOND;

/** @param text as the setting's schema accepted it */
export function parseRelay(text: string) {
  const { protocol, hostname, port, username, password } = new URL(text);
  const host = hostname.replace(/^\[|\]$/g, '');
  const tls = protocol === 'smtps:';
  return {
    host,
    port: port === '' ? (tls ? 465 : 587) : Number(port),
    /**
     * tls: from the first byte; starttls: required before anything else; plain: only on a loopback address.
     */
    mode: tls ? 'tls' : isLoopback(host) ? 'plain' : 'starttls',
    auth: username === '' ? null : { user: decodeURIComponent(username), pass: decodeURIComponent(password) },
  } as const;
}

/** @throws {EgressRefused} */
function open({ host, port, mode }: Relay): Promise<Socket> {
  const allow = mode === 'plain' ? onlyLoopback : anywhere;
  checkLiteralHost(host, allow);
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, lookup: guardedLookup(allow), timeout: STEP_MS });
    socket.once('connect', () => resolve(socket));
    socket.once('timeout', () => socket.destroy(new EgressRefused('the relay did not answer in time')));
    socket.once('error', reject);
  });
}

/** A relay quotes addresses in its answers, so only the code is reported. */
function toRefused(error: unknown): EgressRefused {
  if (error instanceof EgressRefused) return error;
  const { responseCode, code } = error as { responseCode?: unknown; code?: unknown };
  if (typeof responseCode === 'number') return new EgressRefused(`the relay answered ${responseCode}`);
  return new EgressRefused(`the relay cannot be used (${typeof code === 'string' ? code : 'unknown'})`);
}

async function withRelay<T>(relay: Relay, work: (transport: ReturnType<typeof createTransport>) => T) {
  const { host, mode, auth } = relay;
  let connection: Socket | null = null;
  let timer: NodeJS.Timeout | undefined;
  try {
    const socket = await open(relay);
    connection = socket;
    const timeout = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new EgressRefused('the relay did not answer in time')), PATIENCE_MS);
    });
    // Loaded late: an installation without a relay does not need it.
    const nodemailer = await import('nodemailer');
    const transport = nodemailer.createTransport({
      host,
      secure: mode === 'tls',
      requireTLS: mode === 'starttls',
      ignoreTLS: mode === 'plain',
      tls: { minVersion: 'TLSv1.2', ...(isIP(host) === 0 ? { servername: host } : {}) },
      ...(auth ? { auth } : {}),
      getSocket: (_options: unknown, done: (error: null, given: object) => void) =>
        done(null, { connection: socket }),
      greetingTimeout: STEP_MS,
      socketTimeout: STEP_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    return await Promise.race([work(transport), timeout]);
  } catch (error) {
    throw toRefused(error);
  } finally {
    clearTimeout(timer);
    connection?.destroy();
  }
}

/**
 * Resolves once the relay has accepted the mail.
 * @throws {EgressRefused} with a reason that identifies nobody
 */
export async function sendMail(relay: Relay, mail: Mail): Promise<void> {
  // RFC 3834: no automatic reply answers it.
  const headers = { 'auto-submitted': 'auto-generated' };
  await withRelay(relay, (transport) => transport.sendMail({ ...mail, headers, encoding: 'utf-8' }));
}

/** Greets the relay and signs in; nothing is sent. @throws {EgressRefused} */
export async function greetRelay(relay: Relay): Promise<void> {
  await withRelay(relay, (transport) => transport.verify());
}
