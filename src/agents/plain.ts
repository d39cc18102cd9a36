import type { ComponentDescriptor, SignatureParameters } from 'http-message-sig';
import { parseUrl } from '../lib/text.ts';
import { directoryUrl } from './directory.ts';
import { fieldContent, MAX_COMPONENTS, type OwnRequest, targetUri } from './message.ts';

/**
 * One signature in the form that agents' libraries write: a single label, canonical fields, well-known components and
 * parameters. The signature base then has its parameters as they came, so nothing is parsed into values and written
 * out again. Every other form is null here, and http-message-sig judges it (general.ts). A property test checks that both
 * read the same from what is not null.
 */
export type PlainSignature = NonNullable<ReturnType<typeof readPlain>>;

/** A string without escapes: what is between the quotes is its value. */
const TEXT = '"[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]*"';
const KEY = '[a-z*][a-z0-9_.*-]*';
const COMPONENT = '"@?[a-z0-9_-]+"(?:;key="[a-z0-9_.*-]+")?';
const INTEGER = '(?:0|[1-9][0-9]{0,14})';
const PARAMETER = `;(?:created|expires)=${INTEGER}|;(?:nonce|alg|keyid|tag)=${TEXT}`;

const SIGNATURE_INPUT = new RegExp(`^(${KEY})=(\\((${COMPONENT}(?: ${COMPONENT})*)\\)((?:${PARAMETER})*))$`);
/** 64 bytes. */
const SIGNATURE = new RegExp(`^(${KEY})=:([A-Za-z0-9+/]{86}==):$`);
const SIGNATURE_AGENT = new RegExp(`^(?:(${KEY})=)?(${TEXT})$`);
const PARAMETERS = new RegExp(`;([a-z]+)=(?:(${INTEGER})|(${TEXT}))`, 'g');

const METHOD = /^[A-Z]+$/;
const AUTHORITY = /^[a-z0-9.:[\]-]+$/;
/** Origin form, without a fragment. */
const TARGET = /^\/[\x21\x22\x24-\x7e]*$/;
const NO_PARAMETERS = {};

function single({ headers }: OwnRequest, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' ? value : null;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Null: a parameter twice. */
function readParameters(text: string): SignatureParameters | null {
  const claims: Mutable<SignatureParameters> = {};
  for (const [, name = '', integer, quoted] of text.matchAll(PARAMETERS)) {
    if (name in claims) return null;
    if (name === 'created' || name === 'expires') claims[name] = Number(integer);
    else claims[name as 'nonce' | 'alg' | 'keyid' | 'tag'] = quoted?.slice(1, -1) ?? '';
  }
  return claims;
}

function derived(request: OwnRequest, name: string): string | null {
  if (name === '@method') return request.method;
  const uri = targetUri(request);
  // What a URL parser makes of the name is what is signed: a default port and odd spellings fall away.
  const url = parseUrl(uri);
  if (url === null) return null;
  if (name === '@authority') return url.host;
  if (name === '@target-uri') return uri;
  if (name === '@path') return request.target.replace(/\?.*$/, '');
  return null;
}

function field(request: OwnRequest, name: string): string | null {
  const value = single(request, name);
  return value === null ? null : fieldContent(name, value);
}

type Agent = NonNullable<ReturnType<typeof readAgent>>;

/** `address` with its quotes. */
function readAgent(request: OwnRequest) {
  const [, key, address] = SIGNATURE_AGENT.exec(single(request, 'signature-agent') ?? '') ?? [];
  return address === undefined ? null : { key, address };
}

/** `identifier` with the bytes of Signature-Input: the base has the same bytes. */
function readLine(request: OwnRequest, agent: Agent, identifier: string) {
  const end = identifier.indexOf('"', 1);
  const name = identifier.slice(1, end);
  const isAgent = name === 'signature-agent';
  const key = end === identifier.length - 1 ? undefined : identifier.slice(end + 7, -1);
  if ((key !== undefined || isAgent) && (!isAgent || key !== agent.key)) return null;
  const fromField = isAgent ? agent.address : field(request, name);
  const value = name.startsWith('@') ? derived(request, name) : fromField;
  if (value === null) return null;
  const parameters = key === undefined ? NO_PARAMETERS : { key };
  return { component: { name, parameters }, text: `${identifier}: ${value}\n` };
}

/** Null: a component twice, too many, or one that is not for here. */
function readComponents(request: OwnRequest, agent: Agent, list: string) {
  const identifiers = list.split(' ');
  if (identifiers.length > MAX_COMPONENTS || new Set(identifiers).size < identifiers.length) return null;
  const components: ComponentDescriptor[] = [];
  let lines = '';
  for (const identifier of identifiers) {
    const line = readLine(request, agent, identifier);
    if (line === null) return null;
    components.push(line.component);
    lines += line.text;
  }
  return { components, lines };
}

function isPlain({ method, authority, target }: OwnRequest): boolean {
  return METHOD.test(method) && AUTHORITY.test(authority) && TARGET.test(target);
}

/** The only signature of a request, or null when it is not in the plain form. */
export function readPlain(request: OwnRequest) {
  const input = SIGNATURE_INPUT.exec(single(request, 'signature-input') ?? '');
  const signed = SIGNATURE.exec(single(request, 'signature') ?? '');
  const agent = readAgent(request);
  if (!input || !signed || !agent || !isPlain(request)) return null;
  const [, label = '', params = '', list = '', parameterText = ''] = input;
  const parameters = readParameters(parameterText);
  const covers = readComponents(request, agent, list);
  if (signed[1] !== label || !parameters || !covers) return null;
  const { components, lines } = covers;
  // A bare string stands for the agent only where it is covered, and so does a member (coveredDirectory).
  const covered = components.some(({ name }) => name === 'signature-agent');
  return {
    label,
    components,
    parameters,
    directory: covered ? directoryUrl(agent.address.slice(1, -1)) : null,
    /** The signature base (RFC 9421 section 2.5). */
    base: Buffer.from(`${lines}"@signature-params": ${params}`, 'latin1'),
    signature: Buffer.from(signed[2] ?? '', 'base64'),
  };
}
