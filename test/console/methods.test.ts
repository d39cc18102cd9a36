import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TABLES } from '../../src/console/console-pages.ts';
import { ask } from '../support/http.ts';
import { type Console, signIn, startConsole, type Visitor } from './support/console.ts';
import { ROUTES } from './support/routes.ts';

/** Each path of the console answers 405 with `Allow` to a method that it does not take. */

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];

let site: Console;
let dora: Visitor;
beforeAll(async () => {
  site = await startConsole();
  dora = await signIn(site.url, 'dora');
});
afterAll(() => site.stop());

it('names every route there is', () => {
  const folder = new URL('../../src/console/', import.meta.url);
  const source = readdirSync(folder)
    .map((file) => readFileSync(new URL(file, folder), 'utf8'))
    .join('\n');
  const open = [...source.matchAll(/router\.(?:get|post|put|delete|all)\(\s*'([^']+)'/g)].map(
    ([, path]) => path!,
  );
  const tables = TABLES.flatMap(({ pages = {}, forms = {} }) => Object.keys({ ...pages, ...forms }));
  const declaredPaths = [...open, ...tables];
  expect(open.length).toBeGreaterThan(2);
  expect(declaredPaths.length).toBeGreaterThan(20);
  expect(declaredPaths.filter((path) => !Object.hasOwn(ROUTES, path))).toEqual([]);
});

it.each(Object.entries(ROUTES))('%s takes %s and answers 405 to the rest', async (route, allowed) => {
  const path = `/console${route.replace(':id', 'con_00000000000000000000000000')}`;
  const cookie = [...dora.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  for (const method of METHODS) {
    if (allowed.split(', ').includes(method)) continue;
    for (const headers of [{ cookie, origin: site.url }, {}]) {
      const reply = await ask(site.url, path, { method, headers });
      expect({ method, status: reply.status, allow: reply.headers.allow }).toEqual({
        method,
        status: 405,
        allow: allowed,
      });
      expect(reply.headers['content-type']).toMatch(/^text\/html/);
      expect(reply.headers['content-security-policy']).toContain("default-src 'none'");
      expect(reply.text).toContain('cannot be opened directly');
    }
  }
  // Its allowed methods do not answer 405.
  const method = allowed.split(', ')[0] ?? '';
  expect((await ask(site.url, path, { method })).status).not.toBe(405);
});
