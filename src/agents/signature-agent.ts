import { type Item, isInnerList, parseDictionary, parseItem, Token } from 'structured-headers';
import { orElse } from '../lib/or-else.ts';
import { directoryUrl } from './directory.ts';

/** A component that a signature covers, as the signature library hands it over. */
export interface Covered {
  readonly name: string;
  readonly parameters: Readonly<Record<string, unknown>>;
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
export function coveredDirectory(header: string, label: string, components: readonly Covered[]) {
  const covered = components.filter((component) => component.name === 'signature-agent');
  const [component] = covered;
  if (covered.length !== 1 || component === undefined) return null;
  const address = addressIn(header, component.parameters['key'], label);
  return address === null ? null : directoryUrl(address);
}
