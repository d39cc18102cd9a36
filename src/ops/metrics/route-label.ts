/**
 * Labels a path for metrics with its route in the table of routes, or `other`; the label never has text of
 * the request.
 */

const OTHER = 'other';

function toPattern(path: string): RegExp {
  const escaped = path.replace(/[.+*?^$()[\]\\|]/g, String.raw`\$&`);
  return new RegExp(`^${escaped.replace(/\{[^}]+\}/g, '[^/]+')}$`);
}

/** All paths that begin with one of these share its label. */
const TREES = ['/v1/ledger/tile/', '/ledger/', '/console/', '/docs', '/assets/'] as const;

export function createRouteLabel(paths: readonly string[]): (path: string) => string {
  const exact = new Set(paths.filter((path) => !path.includes('{')));
  const patterns = paths
    .filter((path) => path.includes('{'))
    .map((path) => ({ path, pattern: toPattern(path) }));
  return (path) => {
    if (exact.has(path)) return path;
    const tree = TREES.find((start) => path.startsWith(start));
    return tree ?? patterns.find(({ pattern }) => pattern.test(path))?.path ?? OTHER;
  };
}
