import {
  type ComponentDescriptor,
  type RequestDescriptor,
  type UntrustedSignatureCandidate,
  type Verifier,
  verifySignature,
} from 'http-message-sig';
import { type Item, isInnerList, parseDictionary, parseItem, Token } from 'structured-headers';
import { headerText } from '../http/request.ts';
import { orElse } from '../lib/functions.ts';
import { directoryUrl } from './directory.ts';
import {
  ALGORITHM,
  type Claim,
  CREATED_SKEW_SECONDS,
  fieldContent,
  MAX_COMPONENTS,
  MAX_KEYED,
  type OwnRequest,
  SIGNATURE_FIELDS,
  TAG,
  targetUri,
} from './message.ts';

/** Signatures in every form that RFC 9421 allows, read by http-message-sig. */

/** Not too much to verify, and its directory once: otherwise it names none, and each time costs a reading of that header. */
const isReadable = (list: readonly Item[]): boolean =>
  list.length <= MAX_COMPONENTS &&
  list.filter(([, parameters]) => parameters.has('key')).length <= MAX_KEYED &&
  list.filter(([name]) => name === 'signature-agent').length === 1;

/** The labels that carry the tag, as a String and not a Token; only those of a well-formed header. */
export function taggedLabels(request: OwnRequest, most: number): string[] {
  const input = headerText(request.headers, 'signature-input') ?? '';
  return [...orElse(() => parseDictionary(input), [])]
    .filter(([, member]) => isInnerList(member) && member[1].get('tag') === TAG)
    .filter(([, [list]]) => Array.isArray(list) && isReadable(list))
    .map(([label]) => label)
    .slice(0, most);
}

/** Only fields that the signature may cover: one odd header elsewhere must not cost the agent its name. */
function describe(request: OwnRequest): RequestDescriptor {
  const input = headerText(request.headers, 'signature-input') ?? '';
  const fields = Object.entries(request.headers).flatMap(([name, value]) => {
    if (value === undefined || !(input.includes(`"${name}"`) || SIGNATURE_FIELDS.includes(name))) return [];
    const values = (typeof value === 'string' ? [value] : value).map((text) => fieldContent(name, text));
    return values.every((text) => text !== null) ? values.map((text) => ({ name, value: text })) : [];
  });
  const { method, target } = request;
  return { kind: 'request', method, targetUri: targetUri(request), requestTarget: target, fields };
}

/** The one kind of document whose host is the agent's name; what is of another kind is ignored (contract 17). */
const DIRECTORY = 'directory';

function addressOf([value, parameters]: Item): string | null {
  const type = parameters.get('type') ?? DIRECTORY;
  const isDirectory = (type instanceof Token ? type.toString() : type) === DIRECTORY;
  return typeof value === 'string' && isDirectory ? value : null;
}

function addressIn(header: string, key: unknown, label: string): string | null {
  if (key === undefined) {
    const legacy = orElse(() => parseItem(header), null);
    return legacy && addressOf(legacy);
  }
  const members = orElse(() => parseDictionary(header), null);
  if (typeof key !== 'string' || (key !== label && members?.has(label))) return null;
  const member = members?.get(key);
  return member === undefined || isInnerList(member) ? null : addressOf(member);
}

/**
 * The directory that a signature names, from the part of Signature-Agent that the signature itself covers: a dictionary
 * member (`"signature-agent";key="…"`), or the deployed legacy form, a bare string. A member keyed to the signature's own
 * label has to be the covered one, otherwise somebody else's header could be relabelled. Null: none that is covered.
 */
function coveredDirectory(header: string, label: string, components: readonly ComponentDescriptor[]) {
  const covered = components.filter((component) => component.name === 'signature-agent');
  const [component] = covered;
  if (covered.length !== 1 || component === undefined) return null;
  const address = addressIn(header, component.parameters['key'], label);
  return address === null ? null : directoryUrl(address);
}

/**
 * Reads the signature of a label and has it verified.
 * @param trust judges what it says of itself and hands over what verifies its bytes
 * @throws for whatever is not a good signature
 */
export async function verifyGeneral(
  request: OwnRequest,
  label: string,
  now: number,
  trust: (claim: Claim) => Verifier,
): Promise<void> {
  const agent = headerText(request.headers, 'signature-agent') ?? '';
  const resolveVerifier = ({ components, parameters }: UntrustedSignatureCandidate): Verifier =>
    trust({ components, parameters, directory: coveredDirectory(agent, label, components) });
  await verifySignature(describe(request), {
    label,
    resolveVerifier,
    policy: {
      algorithms: [ALGORITHM],
      requiredComponents: [],
      requiredParameters: ['created', 'expires', 'keyid', 'tag'],
      clockSkew: CREATED_SKEW_SECONDS,
      now,
    },
  });
}
