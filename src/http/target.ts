import { works } from '../lib/or-else.ts';

/** Request targets (RFC 9112 section 3.2): the origin form, the absolute form of a proxy, and the asterisk. */

/** With an authority, which is not looked at: one gpd answers under all its names. */
const ABSOLUTE = /^https?:\/\/[^/?#]+/i;

/** The target as a path with its query; null when it has none of the forms that a server accepts. */
export function originForm(target: string): string | null {
  if (target.startsWith('/') || target === '*') return target;
  const absolute = ABSOLUTE.exec(target)?.[0];
  if (absolute === undefined) return null;
  const rest = target.slice(absolute.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

export function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

/**
 * A path with a malformed percent-escape names nothing, and is used unchanged: Express would refuse it before it is
 * known who asks, and 401 comes first (contract section 1).
 */
export function literalTarget(target: string): string {
  const path = pathOf(target);
  if (works(() => decodeURIComponent(path))) return target;
  return path.replaceAll('%', '%25') + target.slice(path.length);
}
