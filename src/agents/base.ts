import {
  type Dictionary,
  type Item,
  isInnerList,
  parseDictionary,
  serializeInnerList,
  serializeItem,
  serializeParameters,
} from 'structured-headers';
import { type HeaderMap, headerText } from '../http/request.ts';
import { tryOr } from '../lib/errors.ts';
import { SIGNATURE_FIELDS, type TaggedSignature } from './claim.ts';
import type { AgentReason } from './reasons.ts';

/** Writes the bytes that a signature of RFC 9421 covers, and reads its own (ADR 0108). */

export interface SignedRequest {
  readonly method: string;
  /** The request target as sent. */
  readonly target: string;
  readonly https: boolean;
  /** Lower case, without the scheme's own port. */
  readonly authority: string;
  readonly headers: HeaderMap;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const FIELD_CONTENT = /^[\t\x20-\x7e]*$/;
const MAX_COVERED_LENGTH = 2048;
/** No header that an honest agent covers has so many blanks in a row. */
const LONG_RUN = /[\t ]{33}/;

const scheme = ({ https }: SignedRequest): string => (https ? 'https' : 'http');
const targetUri = (request: SignedRequest): string =>
  `${scheme(request)}://${request.authority}${request.target}`;

/** The place of the query in a target. */
function queryAt(target: string): number {
  const at = target.indexOf('?');
  return at === -1 ? target.length : at;
}

/** RFC 9421 section 2.2, without `@query-param`. */
const DERIVED = new Map<unknown, (request: SignedRequest) => string>([
  ['@method', ({ method }) => method],
  ['@target-uri', targetUri],
  ['@authority', ({ authority }) => authority],
  ['@scheme', scheme],
  ['@request-target', ({ target }) => target],
  ['@path', ({ target }) => target.slice(0, queryAt(target))],
  ['@query', ({ target }) => target.slice(queryAt(target)) || '?'],
]);

/** Two readings of one text would be two signatures, so nothing may come twice. */
function dictionaryFault(text: string, dictionary: Dictionary): AgentReason | null {
  const outside = outsideStrings(text);
  if (hasNewValues(outside)) return 'component-not-supported';
  if (outside.split(',').length !== dictionary.size) return 'labels-differ';
  let count = 1;
  for (const member of dictionary.values()) {
    count += member[1].size;
    if (isInnerList(member)) for (const [, parameters] of member[0]) count += parameters.size;
  }
  return outside.split(';').length === count ? null : 'signature-malformed';
}

/** @param text was parsed, so that each of its strings has an end */
const outsideStrings = (text: string): string => text.replace(/"(?:\\.|[^"\\])*"/g, '""');

/** RFC 9421 is about the structured fields of RFC 8941, which have no dates and display strings. */
const hasNewValues = (outside: string): boolean => outside.includes('@') || outside.includes('%"');

/** The bytes of a signature. `Signature` and `Signature-Input` must have the same labels. */
export function readSignature(
  headers: HeaderMap,
  { label, members }: TaggedSignature,
): { readonly bytes: Uint8Array } | AgentReason {
  const text = headerText(headers, 'signature') ?? '';
  const signatures = tryOr(() => parseDictionary(text), null);
  if (signatures === null) return 'signature-malformed';
  const input = headerText(headers, 'signature-input') ?? '';
  const fault = dictionaryFault(text, signatures) ?? dictionaryFault(input, members);
  if (fault !== null) return fault;
  for (const member of members.values()) if (!isInnerList(member)) return 'signature-malformed';
  for (const [name, [value, parameters]] of signatures) {
    if (!(value instanceof ArrayBuffer) || parameters.size > 0) return 'signature-malformed';
    if (!members.has(name)) return 'labels-differ';
  }
  const bytes = signatures.get(label)?.[0];
  return bytes instanceof ArrayBuffer && signatures.size === members.size
    ? { bytes: new Uint8Array(bytes) }
    : 'labels-differ';
}

/** The only parameter of a component that is known here is `key`. */
function componentFault([name, parameters]: Item): AgentReason | null {
  if (typeof name !== 'string' || name !== name.toLowerCase()) return 'signature-malformed';
  const key = parameters.get('key');
  const isKnown = name.startsWith('@')
    ? DERIVED.has(name) && parameters.size === 0
    : FIELD_NAME.test(name) && (parameters.size === 0 || (parameters.size === 1 && typeof key === 'string'));
  return isKnown ? null : 'component-not-supported';
}

/** A line break in a value could forge a line of the base. */
function isFieldContent(name: string, line: string): boolean {
  const isShort = line.trim().length <= MAX_COVERED_LENGTH || SIGNATURE_FIELDS.includes(name);
  return isShort && FIELD_CONTENT.test(line) && !LONG_RUN.test(line.trim());
}

type Value = { readonly value: string } | AgentReason;

function fieldValue(headers: HeaderMap, name: string): Value {
  const field = Object.hasOwn(headers, name) ? headers[name] : undefined;
  if (field === undefined) return 'component-missing';
  const lines = typeof field === 'string' ? [field] : field;
  if (!lines.every((line) => isFieldContent(name, line))) return 'component-unreadable';
  return { value: lines.map((line) => line.trim()).join(', ') };
}

function readMembers(text: string): Dictionary | AgentReason {
  const dictionary = tryOr(() => parseDictionary(text), null);
  if (dictionary === null) return 'signature-malformed';
  return hasNewValues(outsideStrings(text)) ? 'component-not-supported' : dictionary;
}

/** The members of the headers of one request: up to six components name one of the same header. */
type Parsed = Map<string, Dictionary | AgentReason>;

function memberValue(parsed: Parsed, text: string, key: string): Value {
  const members = parsed.get(text) ?? readMembers(text);
  parsed.set(text, members);
  if (typeof members === 'string') return members;
  const member = members.get(key);
  if (member === undefined) return 'component-missing';
  return { value: isInnerList(member) ? serializeInnerList(member) : serializeItem(member) };
}

function componentValue(request: SignedRequest, parsed: Parsed, [name, parameters]: Item): Value {
  const derive = DERIVED.get(name);
  if (derive) return { value: derive(request) };
  const found = fieldValue(request.headers, name as string);
  const key = parameters.get('key');
  return typeof found === 'string' || key === undefined
    ? found
    : memberValue(parsed, found.value, key as string);
}

/** The signature base (RFC 9421 section 2.5), or what is wrong with it. */
export function writeBase(
  request: SignedRequest,
  { components, parameters }: TaggedSignature,
): { readonly base: string } | AgentReason {
  const uri = targetUri(request);
  if (!FIELD_CONTENT.test(uri)) return 'signature-malformed';
  // A fragment is never sent.
  if (!TOKEN.test(request.method) || uri.includes('#')) return 'component-not-supported';
  for (const component of components) {
    const fault = componentFault(component);
    if (fault !== null) return fault;
  }
  const names = components.map((component) => serializeItem(component));
  if (new Set(names).size < names.length) return 'component-repeated';
  let base = '';
  const parsed: Parsed = new Map();
  for (const [i, component] of components.entries()) {
    const found = componentValue(request, parsed, component);
    if (typeof found === 'string') return found;
    base += `${names[i]}: ${found.value}\n`;
  }
  return { base: `${base}"@signature-params": (${names.join(' ')})${serializeParameters(parameters)}` };
}
