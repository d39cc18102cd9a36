/**
 * Compares a visitor's path with the paths of a policy. Servers read one target in different ways: they
 * decode it once or twice, merge slashes, resolve `..`, drop `;parameters`, or ignore case. A client picks
 * the way that suits it, so a row may concern a request in any of them.
 */

export interface PathReading {
  /** Decoded once; the reading of a server that compares letter by letter. */
  readonly exact: readonly string[];
  /** All readings at once: what any server finds below a path is below it here. */
  readonly loose: readonly string[];
  /** It has a `..`, so that some servers leave segments out. */
  readonly climbs: boolean;
  /** It is missing or longer than it is read: it may be below any path. */
  readonly isUnread: boolean;
}

/** No page has a longer path; comparing one with many rows would cost more than verifying a signature. */
const MAX_PATH = 2048;
const MAX_CLIMBING = 64;
export const UNREAD: PathReading = { exact: [], loose: [], climbs: true, isUnread: true };

const decodeBytes = (text: string): string =>
  text.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));

const isNamed = (segment: string): boolean => segment !== '' && segment !== '.';

/** @param target path and query as the client sent them, a character for each byte */
export function readPath(target: string): PathReading {
  const [path = ''] = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split('?', 1);
  if (path.length > MAX_PATH) return UNREAD;
  const once = decodeBytes(path);
  const exact = once.split(/[/\\]+/).filter(isNamed);
  const loose = decodeBytes(once)
    .toLowerCase()
    .split(/[/\\#]+/)
    .map((segment) => segment.split(';', 1)[0] ?? '')
    .filter(isNamed);
  const climbs = loose.includes('..');
  return climbs && loose.length > MAX_CLIMBING ? UNREAD : { exact, loose, climbs, isUnread: false };
}

/** The path of a row; its text is Unicode, and a target has bytes. */
export const readRulePath = (path: string): PathReading =>
  readPath(Buffer.from(path, 'utf8').toString('latin1'));

const begins = (below: readonly string[], segments: readonly string[]): boolean =>
  below.every((segment, i) => segments[i] === segment);

/** A path without its `..` is some of its segments, in their order. */
function isWithin(below: readonly string[], segments: readonly string[]): boolean {
  let found = 0;
  for (const segment of segments) if (segment === below[found]) found += 1;
  return found === below.length;
}

/** True: some server may find the request below this path. */
export const mayBeBelow = (rule: PathReading, { loose, climbs, isUnread }: PathReading): boolean =>
  isUnread || (climbs ? isWithin(rule.loose, loose) : begins(rule.loose, loose));

/** True: every server finds it below this path. */
export const isSurelyBelow = (rule: PathReading, { exact, climbs }: PathReading): boolean =>
  begins(rule.exact, exact) && (!climbs || rule.exact.length === 0);
