import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'oxc-parser';
import { describe, expect, it } from 'vitest';

/** The ranks and roles of CONTRIBUTING.md. The linters check sizes, default exports, circles and the environment. */

/** From left to right; rooms of one rank do not import each other. */
const RANKS = [
  ['lib'],
  ['schema'],
  ['seal', 'ledger', 'keys', 'auth'],
  ['db', 'http', 'egress'],
  ['config'],
  ['audit'],
  ['tenants'],
  ['log', 'notify', 'agents'],
  ['consent'],
  ['ingest'],
  ['attest'],
  ['rights'],
  ['console'],
  ['ops'],
  ['demo'],
  ['services'],
  ['app'],
  ['cli'],
] as const;

type Room = (typeof RANKS)[number][number] | 'agent' | 'banner' | 'browser';

const ANY_NODE = 'node:*';
/** All rooms of the server may import these. */
const VALUES = ['node:buffer', 'node:crypto', 'node:stream', 'zod'];
/** Packages that a room may import in addition. */
const PACKAGES: Readonly<Record<Room, readonly string[]>> = {
  lib: ['canonicalize', 'ipaddr.js'],
  schema: [],
  seal: [],
  ledger: [],
  keys: ['@scure/base'],
  auth: ['jose'],
  db: [ANY_NODE, 'knex', 'pg', 'sqlite3'],
  http: [ANY_NODE, 'express', 'node-forge', 'rate-limiter-flexible'],
  egress: [ANY_NODE, 'jose', 'nodemailer', 'openid-client'],
  config: [ANY_NODE, 'fastest-levenshtein', 'smol-toml'],
  audit: [],
  tenants: [],
  log: [],
  notify: ['node:fs'],
  agents: ['jose', 'structured-headers'],
  consent: ['jose'],
  ingest: ['maxmind'],
  attest: ['@simplewebauthn/server'],
  rights: ['node-forge', 'yazl', 'ejs'],
  console: ['ejs'],
  ops: [
    ANY_NODE,
    '@modelcontextprotocol/server',
    'express',
    'maxmind',
    'node-forge',
    'pino',
    'prom-client',
    'rate-limiter-flexible',
  ],
  demo: [ANY_NODE, 'express', 'ejs', 'jose', 'oidc-provider'],
  services: [],
  app: [ANY_NODE, 'express'],
  cli: [
    ANY_NODE,
    '@modelcontextprotocol/server',
    'commander',
    'csv-parse',
    'fastest-levenshtein',
    'ink',
    'react',
  ],
  agent: [],
  banner: [],
  browser: [],
};

/** Packages that a role may import in addition to those of its room. */
const ROLE_PACKAGES = {
  store: ['knex'],
  routes: [ANY_NODE, 'express'],
  service: [ANY_NODE],
  worker: [ANY_NODE],
  files: [ANY_NODE],
  value: [],
} as const satisfies Readonly<Record<string, readonly string[]>>;
type Role = keyof typeof ROLE_PACKAGES;

/** A command of the command line and what starts or joins everything may do what a service may. */
const isProgram = (file: string): boolean =>
  /^src\/(?:cli\/(?:commands\/|ui\/|gpd\.ts$|main\.ts$)|app\.ts$|services\.ts$)/.test(file);

/** Rooms without roles: all their files are pure, and get time and randomness as arguments. */
const PURE = new Set<Room>(['lib', 'schema', 'seal', 'ledger', 'keys', 'auth']);
/** Rooms whose files have a role, which follows from the name. */
const FEATURES = new Set<Room>(
  RANKS.slice(
    RANKS.findIndex(([room]) => room === 'audit'),
    RANKS.findIndex(([room]) => room === 'ops'),
  ).flat(),
);
/** Rooms that put features together; the files of these have a role as well. */
const OUTER = new Set<Room>(['ops', 'demo', 'app', 'cli']);
/** The files of the server that browser code may import; of schema only types. */
const LEAVES: ReadonlyMap<Room, RegExp> = new Map([
  ['agent', /^src\/(?:agent\/|browser\/|lib\/|seal\/(?:constants|context)\.ts$)/],
  ['banner', /^src\/(?:banner|browser)\//],
  ['browser', /^src\/browser\//],
]);
const ROOT_FILES: ReadonlyMap<string, Room> = new Map([
  ['src/app.ts', 'app'],
  ['src/config.ts', 'config'],
  ['src/services.ts', 'services'],
  ['src/version.ts', 'config'],
]);

/**
 * The first loads migrations by their file names, the second
 * loads the passkey part from the agent's own address, and the third the built banner.
 */
const COMPUTES_IMPORTS = new Set([
  'src/db/migrate.ts',
  'src/agent/identify.ts',
  'src/consent/markup-files.ts',
  'src/banner/embed.ts',
]);
const IMPURE_IMPORTS = /^(?:random\w*|getRandomValues|generateKey\w*|webcrypto)$/;
const IMPURE_CALLS = /^(?:fetch|setTimeout|setInterval|setImmediate|Date)$/;
const IMPURE_MEMBERS = /^(?:Date\.now|Math\.random|performance\.now|process\.\w+|crypto\.\w+)$/;
/** Lets other work run between two steps; it does not read the clock. */
const YIELDS = 'setImmediate()';
/** Names of knex instances and transactions, which are called with the name of a table. */
const QUERY = /^(?:tx|trx|read|db|knex)$/;

interface Import {
  /** Null if the module name is computed at run time. */
  readonly target: string | null;
  readonly typeOnly: boolean;
  readonly names: readonly string[];
}
interface Module {
  readonly imports: readonly Import[];
  readonly impure: readonly string[];
  /** Tables that are queried by name, also through a transaction: `tx('tenants')`. */
  readonly queries: readonly string[];
}

const nameOf = (node: object): string => ('name' in node ? String(node.name) : '');
const literal = (node: object | undefined): string | null =>
  node && 'value' in node && typeof node.value === 'string' ? node.value : null;

function readModule(file: string, source: string): Module {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]?.message}`);
  const [imports, impure, queries]: [Import[], string[], string[]] = [[], [], []];
  const add = (target: object, kind: string, names: readonly object[] = []): void =>
    void imports.push({ target: literal(target), typeOnly: kind === 'type', names: names.map(nameOf) });
  new Visitor({
    ImportDeclaration({ source, importKind, specifiers }) {
      const names = specifiers.map((each) => ('imported' in each ? each.imported : each.local));
      add(source, importKind ?? 'value', names);
    },
    ExportNamedDeclaration({ source, exportKind, specifiers }) {
      if (source)
        add(
          source,
          exportKind ?? 'value',
          specifiers.map(({ local }) => local),
        );
    },
    ExportAllDeclaration: ({ source, exportKind }) => add(source, exportKind ?? 'value'),
    ImportExpression: ({ source }) => add(source, 'value'),
    TSImportType: ({ source }) => add(source, 'type'),
    MemberExpression({ object, property }) {
      const member = `${nameOf(object)}.${nameOf(property)}`;
      if (IMPURE_MEMBERS.test(member)) impure.push(member);
    },
    NewExpression({ callee, arguments: { length } }) {
      if (nameOf(callee) === 'Date' && length === 0) impure.push('new Date()');
    },
    CallExpression({ callee, arguments: [first] }) {
      if (IMPURE_CALLS.test(nameOf(callee))) impure.push(`${nameOf(callee)}()`);
      if (nameOf(callee) === 'require' && first) add(first, 'value');
      const name = nameOf('property' in callee ? callee.property : callee);
      const table = literal(first);
      if (name === 'raw') queries.push(`${name}(${table ?? '…'})`);
      else if (QUERY.test(name) && /^\w+$/.test(table ?? '')) queries.push(`${name}('${table}')`);
    },
  }).visit(program);
  return { imports, impure, queries };
}

const root = fileURLToPath(new URL('..', import.meta.url));
const modules: ReadonlyMap<string, Module> = new Map(
  readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => `src/${name}`)
    .map((file) => [file, readModule(file, readFileSync(join(root, file), 'utf8'))]),
);

function roomOf(file: string): Room | null {
  const [, folder = '', ...rest] = file.split('/');
  const room = rest.length > 0 && folder in PACKAGES ? (folder as Room) : null;
  return ROOT_FILES.get(file) ?? room;
}

const rankOf = (room: Room): number => RANKS.findIndex((names) => (names as readonly Room[]).includes(room));

/** @returns null for a package */
const resolve = (file: string, target: string): string | null =>
  target.startsWith('.') ? posix.join(posix.dirname(file), target) : null;

/** @returns null if the name of the file has no role */
function suffixRole(file: string): Role | null {
  const last =
    posix
      .basename(file)
      .replace(/\.tsx?$/, '')
      .split('-')
      .at(-1) ?? '';
  if (['store', 'service', 'worker', 'files'].includes(last)) return last as Role;
  if (last === 'checks') return 'service';
  return ['routes', 'pages', 'router'].includes(last) ? 'routes' : null;
}

/** A file whose name has no role is pure. */
const roleOf = (file: string): Role => (isProgram(file) ? 'service' : (suffixRole(file) ?? 'value'));

/** @returns null in a room without roles */
const featureRole = (file: string, room: Room): Role | null =>
  FEATURES.has(room) || OUTER.has(room) ? roleOf(file) : null;

function internalFault(file: string, room: Room, to: string, { typeOnly, names }: Import): string | null {
  const target = roomOf(to);
  if (target === null) return `${file} imports ${to}, which is in no room`;
  const mayImport = LEAVES.get(room);
  if (mayImport) {
    const allowed = mayImport.test(to) || (target === 'schema' && typeOnly);
    return allowed ? null : `${file} (${room}) imports ${to}`;
  }
  if (LEAVES.has(target)) return `${file} (${room}) imports ${to}, a browser's leaf`;
  const touches = target === 'db' || target === 'egress' || (featureRole(to, target) ?? 'value') !== 'value';
  if (
    !typeOnly &&
    touches &&
    featureRole(file, room) === 'value' &&
    names.some((name) => !/^[A-Z]/.test(name))
  )
    return `${file} (no suffix) imports ${to}`;
  const isStore = target === 'db' || (FEATURES.has(target) && roleOf(to) === 'store');
  if (isStore && !typeOnly && featureRole(file, room) === 'routes')
    return `${file} (routes) imports ${to}: a service hands it what it needs`;
  if (target === room || rankOf(target) < rankOf(room)) return null;
  const direction = rankOf(target) === rankOf(room) ? 'a sibling' : 'to the right';
  return `${file} (${room}) imports ${to} (${target}), ${direction}`;
}

function externalFault(file: string, room: Room, target: string, typeOnly: boolean): string | null {
  const name = /^(?:node:.*|@[^/]+\/[^/]+|[^/]+)/.exec(target)?.[0] ?? '';
  const role = featureRole(file, room);
  // An import of types is erased, so it does nothing at run time.
  if (role !== null && typeOnly && name !== 'knex') return null;
  const ofRole = FEATURES.has(room) || OUTER.has(room) ? ROLE_PACKAGES[roleOf(file)] : [];
  const ofRoom =
    OUTER.has(room) && role === 'value' ? PACKAGES[room].filter((each) => each !== ANY_NODE) : PACKAGES[room];
  const allowed: readonly string[] = LEAVES.has(room) ? [] : [...VALUES, ...ofRoom, ...ofRole];
  if (allowed.includes(name) || (name.startsWith('node:') && allowed.includes(ANY_NODE))) return null;
  return `${file} (${role ?? room}) imports the package ${name}`;
}

function impureOf(file: string, room: Room, calls: readonly string[]): readonly string[] {
  const role = PURE.has(room) ? 'value' : featureRole(file, room);
  if (role === 'value') return calls;
  if (OUTER.has(room)) return [];
  if (role === 'store') return calls.filter((call) => call !== YIELDS);
  return role === 'service' || role === 'routes' ? calls.filter((call) => !/^set\w+\(\)$/.test(call)) : [];
}

function* importFaults(file: string, room: Room, { imports }: Module): Generator<string> {
  // A store may create salts, but does not read the clock.
  const isPure = featureRole(file, room) !== 'store' && impureOf(file, room, ['Date.now']).length > 0;
  for (const found of imports) {
    if (found.target === null) {
      if (!COMPUTES_IMPORTS.has(file)) yield `${file} computes what it imports`;
      continue;
    }
    const to = resolve(file, found.target);
    const fault =
      to === null
        ? externalFault(file, room, found.target, found.typeOnly)
        : internalFault(file, room, to, found);
    if (fault !== null) yield fault;
    const random = isPure && to === null ? found.names.filter((name) => IMPURE_IMPORTS.test(name)) : [];
    for (const name of random) yield `${file} (${room}) imports ${name}: a Random is handed in`;
  }
}

function* faultsOf(file: string, module: Module): Generator<string> {
  const room = roomOf(file);
  if (room === null) return yield `${file} is in no room`;
  for (const call of impureOf(file, room, module.impure))
    yield `${file} (${featureRole(file, room) ?? room}) uses ${call}`;
  const maySpeakSql = room === 'db' || LEAVES.has(room) || roleOf(file) === 'store';
  for (const query of maySpeakSql ? [] : module.queries) yield `${file} asks the database: ${query}`;
  yield* importFaults(file, room, module);
}

describe('src/', () => {
  it('is read whole', () => {
    const rooms = new Set([...modules.keys()].map(roomOf));
    expect(rooms).toEqual(new Set([...RANKS.flat(), ...LEAVES.keys()]));
    expect(modules.size).toBeGreaterThan(100);
  });

  it('keeps every rule: ranks, roles, packages, purity, queries', () => {
    expect([...modules].flatMap(([file, module]) => [...faultsOf(file, module)])).toEqual([]);
  });
});
