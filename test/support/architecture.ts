import { posix } from 'node:path';
import { type Import, type Module, readModule } from './modules.ts';

/** Checks the ranks, roles and sizes of CONTRIBUTING.md on sources. The test breaks each rule once. */

/** From left to right; rooms of one rank do not import each other. */
export const RANKS = [
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

type Room = (typeof RANKS)[number][number] | 'agent' | 'banner';

/** Rooms without roles: all their files are pure, and get time and randomness as arguments. */
const PURE = new Set<Room>(['lib', 'schema', 'seal', 'ledger', 'keys', 'auth']);
/** Rooms whose files have a role, which follows from the name. */
const FEATURES = new Set<Room>([
  'audit',
  'tenants',
  'log',
  'notify',
  'agents',
  'consent',
  'ingest',
  'attest',
  'rights',
  'console',
]);

const ROOT_FILES: ReadonlyMap<string, Room> = new Map([
  ['src/app.ts', 'app'],
  ['src/config.ts', 'config'],
  ['src/services.ts', 'services'],
  ['src/version.ts', 'config'],
]);

type Role = 'store' | 'routes' | 'service' | 'worker' | 'files' | 'value';

type Modules = ReadonlyMap<string, Module>;

/** @returns null if the name of the file has no role */
function suffixRole(file: string): Role | null {
  const name = posix.basename(file).replace(/\.tsx?$/, '');
  const [last = ''] = name.split('-').slice(-1);
  if (['store', 'service', 'worker', 'files'].includes(last)) return last as Role;
  return ['routes', 'pages', 'router'].includes(last) ? 'routes' : null;
}

const speaksSql = (module: Module | undefined): boolean =>
  module !== undefined &&
  (module.queries.length > 0 || module.imports.some(({ target }) => target === 'knex'));

/**
 * A suffix names the role. Without one, the role of a file in a feature follows from its imports and
 * calls: a file with SQL is a store, and a file that calls a store, a service or the engine is a service.
 */
function roleOf(file: string, modules: Modules): Role {
  const named = suffixRole(file);
  const room = roomOf(file);
  if (named !== null || room === null || !FEATURES.has(room)) return named ?? 'value';
  const module = modules.get(file);
  if (speaksSql(module)) return 'store';
  const acts = module?.imports.some(({ target, typeOnly }) => {
    const to = target === null || typeOnly ? null : resolve(file, target);
    const other = to === null ? null : roomOf(to);
    if (to === null || other === null) return false;
    return other === 'db' || (FEATURES.has(other) && (suffixRole(to) !== null || speaksSql(modules.get(to))));
  });
  return acts ? 'service' : 'value';
}

const ANY_NODE = 'node:*';
const VALUES = ['node:buffer', 'node:crypto', 'node:stream', 'zod'];
/**
 * Packages that a room may import in addition to zod, node:buffer
 * and node:crypto, which all rooms of the server may.
 */
const PACKAGES: Readonly<Record<Room, readonly string[]>> = {
  lib: ['canonicalize', 'ipaddr.js'],
  schema: [],
  seal: [],
  ledger: [],
  keys: ['@scure/base'],
  auth: ['jose'],
  db: [ANY_NODE, 'knex', 'pg', 'sqlite3'],
  http: [ANY_NODE, 'express', 'helmet', 'node-forge', 'rate-limiter-flexible'],
  egress: [ANY_NODE, 'jose', 'nodemailer', 'openid-client'],
  config: [ANY_NODE, 'fastest-levenshtein', 'smol-toml'],
  audit: [],
  tenants: [],
  log: [],
  notify: ['node:fs'],
  agents: ['jose', 'http-message-sig', 'structured-headers'],
  consent: ['jose'],
  ingest: ['maxmind'],
  attest: ['@simplewebauthn/server'],
  rights: ['node-forge', 'yazl', 'ejs'],
  console: ['ejs'],
  ops: [ANY_NODE, 'express', 'maxmind', 'node-forge', 'pino', 'prom-client', 'rate-limiter-flexible'],
  demo: [ANY_NODE, 'express', 'ejs', 'jose', 'oidc-provider'],
  services: [],
  app: [ANY_NODE, 'express'],
  cli: [ANY_NODE, 'commander', 'csv-parse', 'fastest-levenshtein', 'ink', 'react'],
  agent: [],
  banner: [],
};

/** Packages that a role may import in addition to those of its room. */
const ROLE_PACKAGES: Readonly<Record<Role, readonly string[]>> = {
  store: ['knex'],
  routes: [ANY_NODE, 'express'],
  service: [ANY_NODE],
  worker: [ANY_NODE],
  files: [ANY_NODE],
  value: [],
};

/** The files of the server that browser code may import; of schema only types. */
const LEAVES: ReadonlyMap<Room, RegExp> = new Map([
  ['agent', /^src\/(?:agent\/|lib\/|seal\/(?:constants|context)\.ts$)/],
  ['banner', /^src\/banner\//],
]);

const MAX_LINES = 400;
const MAX_FUNCTION_LINES = 60;
const READS_ENVIRONMENT = new Set(['src/config.ts', 'src/cli/io.ts']);
/**
 * The first loads migrations by their file names, the second
 * loads the passkey part from the agent's own address.
 */
const COMPUTES_IMPORTS = new Set(['src/db/migrate.ts', 'src/agent/identify.ts']);
const IMPURE_IMPORTS = /^(?:random\w*|getRandomValues|generateKey\w*|webcrypto)$/;
/** Lets other work run between two steps; it does not read the clock. */
const YIELDS = 'setImmediate()';

export type Sources = ReadonlyMap<string, string>;

export function roomOf(file: string): Room | null {
  const root = ROOT_FILES.get(file);
  if (root) return root;
  const [, folder = '', ...rest] = file.split('/');
  return rest.length > 0 && folder in PACKAGES ? (folder as Room) : null;
}

const rankOf = (room: Room): number =>
  RANKS.findIndex((names) => (names as readonly string[]).includes(room));

function resolve(file: string, target: string): string | null {
  return target.startsWith('.') ? posix.join(posix.dirname(file), target) : null;
}

function packageOf(target: string): string {
  if (target.startsWith('node:')) return target;
  return target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/');
}

/** Rooms that put features together; their files may also have a role by name. */
const OUTER = new Set<Room>(['ops', 'demo', 'app', 'cli']);

/** @returns null in a room without roles */
const featureRole = (file: string, room: Room, modules: Modules): Role | null =>
  FEATURES.has(room) ? roleOf(file, modules) : null;

function internalFault(file: string, room: Room, to: string, found: Import, modules: Modules): string | null {
  const target = roomOf(to);
  if (target === null) return `${file} imports ${to}, which is in no room`;
  const mayImport = LEAVES.get(room);
  if (mayImport) {
    const allowed = mayImport.test(to) || (target === 'schema' && found.typeOnly);
    return allowed ? null : `${file} (${room}) imports ${to}`;
  }
  if (LEAVES.has(target)) return `${file} (${room}) imports ${to}, a browser's leaf`;
  const role = featureRole(file, room, modules);
  const isStore = target === 'db' || (FEATURES.has(target) && roleOf(to, modules) === 'store');
  if (isStore && !found.typeOnly && role === 'routes') {
    return `${file} (${role}) imports ${to}: a service hands it what it needs`;
  }
  if (target === room || rankOf(target) < rankOf(room)) return null;
  const direction = rankOf(target) === rankOf(room) ? 'a sibling' : 'to the right';
  return `${file} (${room}) imports ${to} (${target}), ${direction}`;
}

function rolePackages(file: string, room: Room, modules: Modules): readonly string[] {
  return FEATURES.has(room) || OUTER.has(room) ? ROLE_PACKAGES[roleOf(file, modules)] : [];
}

function externalFault(file: string, room: Room, found: Import, modules: Modules): string | null {
  const name = packageOf(found.target ?? '');
  const role = featureRole(file, room, modules);
  // An import of types is erased, so it does nothing at run time.
  if (role !== null && found.typeOnly && name !== 'knex') return null;
  const allowed = LEAVES.has(room)
    ? []
    : [...VALUES, ...PACKAGES[room], ...rolePackages(file, room, modules)];
  if (allowed.includes(name) || (name.startsWith('node:') && allowed.includes(ANY_NODE))) return null;
  return `${file} (${role ?? room}) imports the package ${name}`;
}

function impureOf(file: string, room: Room, module: Module, modules: Modules): readonly string[] {
  if (PURE.has(room)) return module.impure;
  const role = featureRole(file, room, modules);
  if (role === 'value') return module.impure;
  if (role === 'store') return module.impure.filter((call) => call !== YIELDS);
  return role === 'service' || role === 'routes'
    ? module.impure.filter((call) => !/^set\w+\(\)$/.test(call))
    : [];
}

function* importFaults(file: string, room: Room, module: Module, modules: Modules): Generator<string> {
  // A store may create salts, but does not read the clock.
  const isStore = featureRole(file, room, modules) === 'store';
  const isPure = !isStore && impureOf(file, room, { ...module, impure: ['Date.now'] }, modules).length > 0;
  for (const found of module.imports) {
    if (found.target === null) {
      if (!COMPUTES_IMPORTS.has(file)) yield `${file} computes what it imports`;
      continue;
    }
    const to = resolve(file, found.target);
    const fault =
      to === null ? externalFault(file, room, found, modules) : internalFault(file, room, to, found, modules);
    if (fault !== null) yield fault;
    const random = isPure && to === null ? found.names.filter((name) => IMPURE_IMPORTS.test(name)) : [];
    for (const name of random) yield `${file} (${room}) imports ${name}: a Random is handed in`;
  }
}

function* faultsOf(file: string, source: string, module: Module, modules: Modules): Generator<string> {
  const room = roomOf(file);
  if (room === null) {
    yield `${file} is in no room`;
    return;
  }
  const lines = source.split('\n').length - (source.endsWith('\n') ? 1 : 0);
  if (lines > MAX_LINES) yield `${file} has ${lines} lines`;
  if (module.defaultExport) yield `${file} has a default export`;
  if (module.readsEnvironment && !READS_ENVIRONMENT.has(file)) yield `${file} reads process.env`;
  for (const call of impureOf(file, room, module, modules))
    yield `${file} (${featureRole(file, room, modules) ?? room}) uses ${call}`;
  const maySpeakSql = room === 'db' || LEAVES.has(room) || roleOf(file, modules) === 'store';
  for (const query of maySpeakSql ? [] : module.queries) yield `${file} asks the database: ${query}`;
  yield* importFaults(file, room, module, modules);
}

/** @returns functions that are too long, as `file name` */
export function longFunctions(sources: Sources): string[] {
  return [...sources].flatMap(([file, source]) =>
    readModule(file, source)
      .functions.filter(({ lines }) => lines > MAX_FUNCTION_LINES)
      .map(({ name }) => `${file} ${name}`),
  );
}
/** @returns each circle of imports once, type-only imports included */
function circles(modules: ReadonlyMap<string, Module>): string[] {
  const found = new Set<string>();
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const at = path.indexOf(file);
    if (at !== -1) {
      const circle = path.slice(at);
      const first = circle.indexOf([...circle].sort()[0] ?? '');
      found.add(`a circle: ${[...circle.slice(first), ...circle.slice(0, first)].join(' → ')}`);
      return;
    }
    if (done.has(file)) return;
    for (const { target } of modules.get(file)?.imports ?? []) {
      const to = target === null ? null : resolve(file, target);
      if (to !== null && modules.has(to)) visit(to, [...path, file]);
    }
    done.add(file);
  };
  for (const file of modules.keys()) visit(file, []);
  return [...found];
}

/** @param sources by path from the root of the project @returns one sentence per broken rule */
export function architectureFaults(sources: Sources): string[] {
  const modules = new Map([...sources].map(([file, source]) => [file, readModule(file, source)]));
  const faults = [...modules].flatMap(([file, module]) => [
    ...faultsOf(file, sources.get(file) ?? '', module, modules),
  ]);
  return [...faults, ...circles(modules)];
}
