import type { IncomingMessage } from 'node:http';
import { readBody } from '../http/request.ts';
import { equalBytes, sha256 } from '../lib/crypto.ts';
import { Refusal } from '../lib/errors.ts';
import { OUTCOMES } from '../schema/rights.ts';
import type { Draft } from './session-store.ts';

/** Forms as a browser without JavaScript sends them. */
export type Form = ReadonlyMap<string, string>;

/** 4,000 characters of four bytes each, percent-encoded, and the rest of the form. */
const MAX_FORM_BYTES = 65_536;
const MAX_FIELDS = 64;

/** @throws {Refusal} `payload-too-large`, `unsupported-media-type`, `invalid-request` */
export async function readForm(request: IncomingMessage): Promise<Form> {
  const closing = { headers: { connection: 'close' } };
  const { headers } = request;
  if (Number(headers['content-length'] ?? 0) > MAX_FORM_BYTES)
    throw new Refusal('payload-too-large', closing);
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  const encoded = (headers['content-encoding'] ?? 'identity') !== 'identity';
  if (type !== 'application/x-www-form-urlencoded' || encoded)
    throw new Refusal('unsupported-media-type', closing);
  const body = await readBody(request, MAX_FORM_BYTES);
  if (!body) throw new Refusal('payload-too-large', closing);
  const fields = [...new URLSearchParams(body.toString('utf8'))];
  const form = new Map(fields.map(([name, value]) => [name, value.replace(/\r\n?/g, '\n')]));
  // The same field twice: a check of one says nothing about the other.
  if (fields.length > MAX_FIELDS || form.size !== fields.length) throw new Refusal('invalid-request');
  return form;
}

/**
 * The browser's own word on where a request comes from (Fetch metadata; the Origin header of RFC 6454). One of the two has to
 * be there: every browser of today sends Origin with a POST.
 */
export function isSameOrigin(request: IncomingMessage, origin: string): boolean {
  const site = request.headers['sec-fetch-site'];
  const from = request.headers.origin;
  if (site === undefined && from === undefined) return false;
  return (site === undefined || site === 'same-origin') && (from === undefined || from === origin);
}

/** Over digests, so that lengths do not show. */
export function sameToken(a: string, b: string): boolean {
  return equalBytes(sha256(a), sha256(b));
}

/** Trimmed; null when empty. */
export function field(form: Form, name: string): string | null {
  const value = form.get(name)?.trim() ?? '';
  return value === '' ? null : value;
}

/** The parts of a parameter in an address, whatever somebody wrote there; none where it does not fit the pattern. */
export function partsOf(value: unknown, pattern: RegExp): readonly (string | undefined)[] {
  return (typeof value === 'string' && pattern.exec(value)) || [];
}

/** An address with those of its parameters that say something. */
export function addressOf(path: string, parameters: Readonly<Record<string, string>>): string {
  const said = Object.entries(parameters).filter(([, value]) => value !== '');
  return said.length === 0 ? path : `${path}?${new URLSearchParams(said).toString()}`;
}

/** What somebody has typed on the page of a case. Its one form sends all of it with every button, so that no button loses any. */

export type TypedByKind = Readonly<Record<Draft['kind'], Draft | null>>;

const CASE = /^\/contests\/(con_\w+)\/(?:claim|release|ask|extend|resolve|template)$/;

/** The contest that a form of its page was sent to. */
export function contestOfPath(path: string): string | null {
  return CASE.exec(path)?.[1] ?? null;
}

/** Null: the form has no such field. */
const draftOf = (
  kind: Draft['kind'],
  text: string | undefined,
  outcome: string | null = null,
): Draft | null => (text === undefined ? null : { kind, text: text.toWellFormed(), outcome });

/** A question sent to its own address comes in the field `text`. */
export function typedOf(form: Form, path: string): TypedByKind {
  const alone = path.endsWith('/ask') && !form.has('question');
  const [reason, question] = alone ? [undefined, form.get('text')] : [form.get('text'), form.get('question')];
  const outcome = OUTCOMES.find((name) => name === form.get('outcome')) ?? null;
  return {
    resolve: draftOf('resolve', reason, outcome),
    ask: draftOf('ask', question),
    extend: draftOf('extend', form.get('extension')),
  };
}

/** A template begins a reason. What was typed stays above it; another template that nobody went on from makes room. */
export function withTemplate(text: string, wanted: string, templates: readonly string[]): string {
  const bare = text.trimEnd();
  const untouched = templates.map((one) => one.trim()).find((one) => bare.endsWith(one));
  const own = untouched === undefined ? bare : bare.slice(0, -untouched.length).trimEnd();
  return own === '' ? wanted : `${own}\n\n${wanted}`;
}
