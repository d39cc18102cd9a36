/** The label of a path: a path of the table of routes, with its parameters as names, or `other`. Never what was sent. */

const OTHER = 'other';

function toPattern(path: string): RegExp {
  const escaped = path.replace(/[.+*?^$()[\]\\|]/g, String.raw`\$&`);
  return new RegExp(`^${escaped.replace(/\{[^}]+\}/g, '[^/]+')}$`);
}

/** Trees of paths, one label each. */
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
