import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { architectureFaults, longFunctions, RANKS, roomOf, type Sources } from './support/architecture.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

function readSources(): Sources {
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  const files = names
    .map((name) => `src/${name.replaceAll('\\', '/')}`)
    .filter((name) => /\.tsx?$/.test(name));
  return new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
}

describe('src/', () => {
  const sources = readSources();

  it('is read whole', () => {
    const rooms = new Set([...sources.keys()].map(roomOf));
    expect(rooms).toEqual(new Set([...RANKS.flat(), 'agent', 'banner']));
    expect(sources.size).toBeGreaterThan(100);
  });

  it('keeps every rule: ranks, roles, packages, purity, queries, no circle, no default export, 400 lines', () => {
    expect(architectureFaults(sources)).toEqual([]);
  });

  it('has no function longer than a screen', () => {
    expect(longFunctions(sources)).toEqual([]);
  });
});

describe('the rules themselves', () => {
  const faults = (...files: readonly (readonly [string, string])[]): string[] =>
    architectureFaults(new Map(files));

  it.each<[string, string, string]>([
    ['to the right', 'src/lib/a.ts', "import { b } from '../schema/b.ts';"],
    ['to the right by a type', 'src/schema/a.ts', "import type { B } from '../ingest/b.ts';"],
    ['to the right by an inline type', 'src/schema/a.ts', "export type A = import('../ingest/b.ts').B;"],
    ['to the right when it runs', 'src/http/a.ts', "export const a = () => import('../app/b.ts');"],
    ['to the right by exporting again', 'src/consent/a.ts', "export { b } from '../ingest/b.ts';"],
    ['to the right by exporting all', 'src/consent/a.ts', "export * from '../ingest/b.ts';"],
    ['the configuration', 'src/http/a.ts', "import { loadConfig } from '../config.ts';"],
    ['the command line', 'src/app.ts', "import { run } from './cli/gpd.ts';"],
    ['a sibling', 'src/seal/a.ts', "import { b } from '../ledger/b.ts';"],
    ['a sibling feature', 'src/log/a.ts', "import type { B } from '../notify/b.ts';"],
    ['the engine in the transport', 'src/http/a.ts', "import type { B } from '../db/b.ts';"],
    ['a feature in the engine', 'src/db/a.ts', "import type { B } from '../rights/b.ts';"],
    ['a store in a route', 'src/rights/a-routes.ts', "import { b } from './erase/store.ts';"],
    ['the browser’s leaf', 'src/ops/a.ts', "import { b } from '../agent/b.ts';"],
    ['the banner', 'src/http/a.ts', "import { b } from '../banner/b.ts';"],
    ['the agent in the banner', 'src/banner/a.ts', "import { b } from '../agent/b.ts';"],
    ['the server in the banner', 'src/banner/a.ts', "import { b } from '../lib/b.ts';"],
    ['what is in no room', 'src/ops/a.ts', "import { b } from '../../test/b.ts';"],
    ['knex in a service', 'src/consent/service.ts', "import type { Knex } from 'knex';"],
    ['knex in the command line', 'src/cli/a.ts', "import type { Knex } from 'knex';"],
    ['a path inside knex', 'src/http/a.ts', "const a = require('knex/lib/index.js');"],
    ['express in the engine', 'src/db/a.ts', "import express from 'express';"],
    ['express in a service', 'src/rights/service.ts', "import express from 'express';"],
    ['the file system in a value', 'src/rights/a.ts', "import { readFileSync } from 'node:fs';"],
    ['the file system in a store', 'src/rights/store.ts', "import { readFileSync } from 'node:fs';"],
    ['node: in schema', 'src/schema/a.ts', "import { readFileSync } from 'node:fs';"],
    ['commander outside the command line', 'src/ops/a.ts', "import { Command } from 'commander';"],
    ['a package in the browser', 'src/agent/a.ts', "import { z } from 'zod';"],
    ['values of schema in the browser', 'src/agent/a.ts', "import { b } from '../schema/b.ts';"],
    ['the opener in the browser', 'src/agent/a.ts', "import { b } from '../seal/open.ts';"],
    ['randomness in a value', 'src/keys/a.ts', "import { randomBytes } from 'node:crypto';"],
    ['something computed', 'src/ops/a.ts', 'export const a = (name: string) => import(name);'],
  ])('find an import of %s', (_what, file, source) => {
    expect(faults([file, source])).toHaveLength(1);
  });

  it.each<[string, string, string]>([
    ['the time', 'src/ingest/a.ts', 'export const a = () => Date.now();'],
    ['the clock handed on', 'src/ingest/a.ts', 'export const a = Date.now;'],
    ['a clock of a store', 'src/log/entries.ts', 'export const a = () => Date.now();'],
    ['a clock of a service', 'src/consent/service.ts', 'export const a = () => Date.now();'],
    ['a new date of now', 'src/rights/a.ts', 'export const a = new Date();'],
    ['a date as text', 'src/rights/a.ts', 'export const a = Date();'],
    ['chance', 'src/lib/a.ts', 'export const a = Math.random();'],
    ['the process', 'src/tenants/a.ts', 'export const a = process.pid;'],
    ['the network', 'src/auth/a.ts', "export const a = () => fetch('https://a.example');"],
    ['a timer', 'src/ingest/a.ts', 'export const a = () => setTimeout(() => {}, 1);'],
    ['the random source of the platform', 'src/seal/a.ts', 'export const a = crypto.randomUUID();'],
    ['the environment outside config.ts', 'src/http/a.ts', "export const a = process.env['PATH'];"],
    ['the environment in the command line', 'src/cli/command.ts', 'export const a = process.env.NO_COLOR;'],
    [
      'a query in a service',
      'src/rights/erase-service.ts',
      "export const a = (tx) => tx('decisions').del();",
    ],
    ['a query by a reader', 'src/ops/a.ts', "export const a = ({ read }) => read('tenants');"],
    ['a query of a database', 'src/cli/a.ts', "export const a = (d) => d.database.read('tenants');"],
    ['a raw query', 'src/app.ts', "export const a = (tx) => tx.raw('SELECT 1');"],
    ['a default export', 'src/cli/a.ts', 'export default 1;'],
    ['401 lines', 'src/ops/a.ts', '// a line\n'.repeat(401)],
    ['a folder that is no room', 'src/utils/a.ts', 'export const a = 1;'],
    ['a file beside the root', 'src/util.ts', 'export const a = 1;'],
  ])('find %s', (_what, file, source) => {
    expect(faults([file, source])).toHaveLength(1);
  });

  it.each<[string, string]>([
    [
      'src/ingest/a.ts',
      "import type { Clock } from '../lib/clock.ts';\nexport const a = (ms: number) => new Date(ms);",
    ],
    ['src/ingest/verdict/a.ts', "import type { B } from '../ports.ts';"],
    [
      'src/consent/a-store.ts',
      "import type { Knex } from 'knex';\nexport const a = (tx: Knex) => tx('purposes');",
    ],
    ['src/rights/a.ts', "import type { Knex } from 'knex';\nexport const a = (tx: Knex) => tx('purposes');"],
    ['src/rights/a.ts', "import { b } from './b-store.ts';\nimport { c } from '../db/purge.ts';"],
    [
      'src/rights/a-service.ts',
      "import { b } from '../ingest/store.ts';\nimport { c } from '../db/purge.ts';",
    ],
    [
      'src/console/a-pages.ts',
      "import type { Router } from 'express';\nimport type { B } from './a-store.ts';",
    ],
    [
      'src/app.ts',
      "import { b } from './http/b.ts';\nimport { c } from './config.ts';\nexport const now = Date.now;",
    ],
    ['src/cli/io.ts', 'export const environment = process.env;'],
    [
      'src/agent/a.ts',
      "import type { B } from '../schema/b.ts';\nimport { C } from '../seal/constants.ts';\nfetch('/');",
    ],
    ['src/lib/a.ts', 'export const a = { process: { env: 1 }, fetch: 2 };'],
    ['src/ops/a.ts', '// a line\n'.repeat(400)],
  ])('find nothing wrong in %s', (file, source) => {
    expect(faults([file, source])).toEqual([]);
  });

  it.each([
    ['a function', 'export function a() {\n'],
    ['a variable', 'export const a = () => {\n'],
    ['a method', 'export const b = { a() {\n'],
  ])('find %s of 61 lines', (_what, head) => {
    const tail = head.includes('{ a()') ? '} };\n' : '}\n';
    const source = (lines: number): Sources =>
      new Map([['src/lib/a.ts', head + '  // x\n'.repeat(lines - 2) + tail]]);
    expect(longFunctions(source(61))).toEqual(['src/lib/a.ts a']);
    expect(longFunctions(source(60))).toEqual([]);
  });

  it('find a circle, type-only imports included, and tell it once', () => {
    const found = faults(
      ['src/lib/a.ts', "import { b } from './b.ts';"],
      ['src/lib/b.ts', "import type { C } from './c.ts';"],
      ['src/lib/c.ts', "export * from './a.ts';"],
      ['src/lib/d.ts', "import { a } from './a.ts';"],
    );
    expect(found).toEqual(['a circle: src/lib/a.ts → src/lib/b.ts → src/lib/c.ts']);
  });
});
