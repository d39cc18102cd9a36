import { describe, expect, it } from 'vitest';
import { json, requireWholeTable } from '../../src/http/routes.ts';
import { ALL_ROUTES, ROUTES } from '../../src/schema/routes.ts';

describe('the table of routes', () => {
  it('has each method of a path once', () => {
    const named = ALL_ROUTES.map(({ method, path }) => `${method} ${path}`);
    expect(new Set(named).size).toBe(named.length);
  });

  it('names every parameter of a path, and what spans segments stands last', () => {
    for (const { path, params = {}, rest } of ALL_ROUTES.filter((route) => !route.undocumented)) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect([path, Object.keys(params)]).toEqual([path, inPath]);
      if (rest !== undefined) expect(inPath.at(-1)).toBe(rest);
    }
  });

  it('has CORS for a whole area or for none of it: what is not there is answered alike', () => {
    const areas = ALL_ROUTES.map(
      ({ path, cors }) => [/^(?:\/v1)?\/[^/]+/.exec(path)?.[0], cors === 'api'] as const,
    );
    const mixed = areas.filter(([area, api]) => areas.some(([other, its]) => other === area && its !== api));
    expect(mixed).toEqual([]);
  });

  it('starts no server with a row that has no handler, or two', () => {
    const health = json(ROUTES.getHealth, () => ({ status: 'ok' as const, version: '1' }));
    const register = (...routes: (typeof health)[]) => requireWholeTable(routes);
    const rest = ALL_ROUTES.filter((row) => row !== ROUTES.getHealth).map((row) => ({ ...health, row }));
    expect(() => register(health, ...rest)).not.toThrow();
    expect(() => register(...rest)).toThrow('get /healthz has no handler');
    expect(() => register(health, health, ...rest)).toThrow('get /healthz has two handlers');
  });
});
