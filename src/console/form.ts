import type { IncomingMessage } from 'node:http';
import { readBody } from '../http/request.ts';
import { equalBytes, sha256 } from '../lib/crypto.ts';
import { Refusal } from '../lib/errors.ts';
import { OUTCOMES } from '../schema/rights.ts';
import type { Draft } from './session-store.ts';

/**
 * Reads the forms that the console's pages post, and the
 * parameters of their addresses. Pages work without JavaScript.
 */

export type Form = ReadonlyMap<string, string>;

/** Enough for 4,000 characters of four bytes each, percent-encoded, and the rest of the form. */
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
  // A field that occurs twice is refused: a check of one value would say nothing about the other.
  if (fields.length > MAX_FIELDS || form.size !== fields.length) throw new Refusal('invalid-request');
  return form;
}

/**
 * Checks Sec-Fetch-Site (Fetch metadata) and Origin (RFC 6454), which a page cannot
 * forge. At least one must be present: every current browser sends Origin with a POST.
 */
export function isSameOrigin(request: IncomingMessage, origin: string): boolean {
  const site = request.headers['sec-fetch-site'];
  const from = request.headers.origin;
  if (site === undefined && from === undefined) return false;
  return (site === undefined || site === 'same-origin') && (from === undefined || from === origin);
}

/** Compares digests, so that the time does not reveal the length. */
export function isSameToken(a: string, b: string): boolean {
  return equalBytes(sha256(a), sha256(b));
}

/** @returns the trimmed value; null if it is empty or missing */
export function readField(form: Form, name: string): string | null {
  const value = form.get(name)?.trim() ?? '';
  return value === '' ? null : value;
}

/** @returns the match and its groups; an empty list if the parameter is no text or does not match */
export function matchParameter(value: unknown, pattern: RegExp): readonly (string | undefined)[] {
  return (typeof value === 'string' && pattern.exec(value)) || [];
}

/** @returns the start of the day in UTC; undefined for anything but YYYY-MM-DD */
export function parseDay(value: unknown): number | undefined {
  const [day = ''] = matchParameter(value, /^\d{4}-\d{2}-\d{2}$/);
  const at = Date.parse(day);
  return Number.isNaN(at) ? undefined : at;
}

/** Leaves out empty parameters. */
export function buildAddress(path: string, parameters: Readonly<Record<string, string>>): string {
  const entries = Object.entries(parameters).filter(([, value]) => value !== '');
  return entries.length === 0 ? path : `${path}?${new URLSearchParams(entries).toString()}`;
}

/**
 * The texts on the page of a case. All are in one form, and
 * each button sends all of them, so that no text is lost.
 */
export type TypedByKind = Readonly<Record<Draft['kind'], Draft | null>>;

const CASE_FORM_PATH =
  /^\/contests\/(con_\w+)\/(?:claim|release|ask|extend|resolve|template|acknowledge|answer)$/;

/** @returns the contest id in the path of a form on the case page; null for any other path */
export function contestOfPath(path: string): string | null {
  return CASE_FORM_PATH.exec(path)?.[1] ?? null;
}

/** @returns null if the form has no such field */
const toDraft = (
  kind: Draft['kind'],
  text: string | undefined,
  outcome: string | null = null,
): Draft | null => (text === undefined ? null : { kind, text: text.toWellFormed(), outcome });

/** A form that only asks a question has it in the field `text`. */
export function readTypedTexts(form: Form, path: string): TypedByKind {
  const hasOnlyQuestion = path.endsWith('/ask') && !form.has('question');
  const [reason, question] = hasOnlyQuestion
    ? [undefined, form.get('text')]
    : [form.get('text'), form.get('question')];
  const outcome = OUTCOMES.find((name) => name === form.get('outcome')) ?? null;
  return {
    resolve: toDraft('resolve', reason, outcome),
    ask: toDraft('ask', question),
    extend: toDraft('extend', form.get('extension')),
  };
}

/** Appends a template to a typed text. It replaces another template at the end to which nothing was added. */
export function appendTemplate(text: string, template: string, templates: readonly string[]): string {
  const trimmed = text.trimEnd();
  const unchanged = templates.map((one) => one.trim()).find((one) => trimmed.endsWith(one));
  const typed = unchanged === undefined ? trimmed : trimmed.slice(0, -unchanged.length).trimEnd();
  return typed === '' ? template : `${typed}\n\n${template}`;
}
