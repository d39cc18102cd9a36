import {
  type Dictionary,
  type InnerList,
  type Item,
  isInnerList,
  parseDictionary,
  parseItem,
} from 'structured-headers';
import { type HeaderMap, headerText } from '../http/request.ts';
import { tryOr } from '../lib/errors.ts';
import { directoryUrl } from './directory.ts';
import type { AgentReason } from './reasons.ts';

/** Reads the claims of a request's signatures. Nothing in them is believed yet. */

/** The headers that carry a signature. */
export const SIGNATURE_FIELDS: readonly string[] = ['signature-input', 'signature', 'signature-agent'];
/** Their limit together, checked before any of them is parsed. */
const MAX_HEADER_BYTES = 8192;
/** At most this many labels are tried; an honest agent sends fewer. */
const MAX_LABELS = 4;
const MAX_COMPONENTS = 16;
/**
 * Each reads its header. A remote browser covers the two headers of the agent in it, and each
 * `Signature-Agent` member.
 */
const MAX_KEYED = 6;

export interface TaggedSignature {
  readonly label: string;
  readonly tag: string;
  readonly components: readonly Item[];
  readonly parameters: InnerList[1];
  /** All of `Signature-Input`. */
  readonly members: Dictionary;
}

/**
 * The signatures that have one of the tags, or the reason why nothing can be judged. Null: the request is not
 * signed, or for another protocol.
 */
export function readTagged(
  headers: HeaderMap,
  tags: readonly string[],
): readonly TaggedSignature[] | AgentReason | null {
  const [input, signature, agent] = SIGNATURE_FIELDS.map((name) => headerText(headers, name));
  if (input == null) return agent == null ? null : 'signature-input-missing';
  const length = input.length + (signature ?? '').length + (agent ?? '').length;
  if (length > MAX_HEADER_BYTES) return 'headers-too-long';
  const members = tryOr(() => parseDictionary(input), null);
  if (!members) return 'signature-input-malformed';
  const tagged = taggedMembers(members, tags);
  if (tagged.length === 0) return agent == null ? null : 'tag-not-accepted';
  if (signature == null) return 'signature-missing';
  return agent == null ? 'signature-agent-missing' : tagged.slice(0, MAX_LABELS);
}

/** A tag is a String, never a Token. */
function taggedMembers(members: Dictionary, tags: readonly string[]): TaggedSignature[] {
  return [...members].flatMap(([label, member]) => {
    if (!isInnerList(member)) return [];
    const [components, parameters] = member;
    const tag = parameters.get('tag');
    return typeof tag === 'string' && tags.includes(tag)
      ? [{ label, tag, components, parameters, members }]
      : [];
  });
}

const isMember = ([name, parameters]: Item, key: string | undefined): boolean =>
  name === 'signature-agent' && parameters.get('key') === key;

/**
 * The key set that a signature names: the member with its own label, which it must cover, or the older form,
 * a bare string that is covered as a whole. It may cover other members too: a remote browser vouches for the
 * agent in it, and each signature is judged alone.
 */
export function namedDirectory(
  header: string,
  { label, components }: TaggedSignature,
): { readonly directory: string } | AgentReason {
  const members = tryOr(() => parseDictionary(header), null);
  const item = members ? members.get(label) : tryOr(() => parseItem(header), null);
  if (item === null) return 'signature-agent-malformed';
  if (item === undefined) return 'signature-agent-no-member';
  if (!components.some((component) => isMember(component, members ? label : undefined)))
    return 'signature-agent-not-covered';
  const [value, parameters] = item;
  if (parameters.size > 0) return 'signature-agent-parameters';
  const directory = typeof value === 'string' ? directoryUrl(value) : null;
  return directory === null ? 'signature-agent-no-url' : { directory };
}

/** True: verifying it would cost more than an honest signature needs. */
export const hasTooMany = ({ components }: TaggedSignature): boolean =>
  components.length > MAX_COMPONENTS ||
  components.filter(([, parameters]) => parameters.has('key')).length > MAX_KEYED;

export const covers = ({ components }: TaggedSignature, ...names: readonly string[]): boolean =>
  components.some(([name]) => typeof name === 'string' && names.includes(name));
