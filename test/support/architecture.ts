import { posix } from 'node:path';
import { type Import, type Module, readModule } from './modules.ts';

/** The layers of ARCHITECTURE.md and what each may use, as a function of sources: a rule that cannot fail is none. */

/** From left to right; siblings share a rank. */
const RANKS = [
  ['lib'],
  ['schema'],
  ['seal', 'ledger'],
  ['ingest', 'consent', 'rights', 'keys', 'tenants', 'auth'],
  ['storage', 'egress', 'http', 'console'],
  ['app'],
  ['cli'],
] as const;

type Layer = (typeof RANKS)[number][number] | 'agent' | 'banner';

/** Pure: time and randomness are handed in, the world is not touched. */
const PURE_RANKS = 4;

const ROOT_FILES = new Set(['src/app.ts', 'src/config.ts', 'src/version.ts']);

const ANY_NODE = 'node:*';
const DOMAIN = ['node:buffer', 'node:crypto', 'zod'];
const PACKAGES: Readonly<Record<Layer, readonly string[]>> = {
  lib: ['node:buffer', 'node:crypto', 'canonicalize', 'ipaddr.js'],
  schema: ['zod'],
  seal: ['node:buffer', 'node:crypto'],
  ledger: ['node:buffer', 'node:crypto', 'zod'],
  ingest: [...DOMAIN, 'jose', 'http-message-sig', 'structured-headers'],
  consent: DOMAIN,
  rights: DOMAIN,
  keys: DOMAIN,
  tenants: DOMAIN,
  auth: [...DOMAIN, 'jose'],
  storage: [
    'node:crypto',
    'node:diagnostics_channel',
    'node:fs',
    'node:fs/promises',
    'node:module',
    'node:path',
    'node:url',
    'knex',
    'pg',
    'sqlite3',
  ],
  egress: [ANY_NODE, 'zod', 'jose', 'openid-client'],
  http: [ANY_NODE, 'zod', 'express', 'helmet', 'rate-limiter-flexible'],
  console: [ANY_NODE, 'zod', 'express'],
  app: [
    ANY_NODE,
    'zod',
    'jose',
    'ejs',
    'express',
    'pino',
    'prom-client',
    'smol-toml',
    'node-forge',
    'maxmind',
    'oidc-provider',
    'yazl',
  ],
  cli: [ANY_NODE, 'zod', 'commander', 'ink', 'react'],
  agent: [],
  banner: [],
};

/** What the browser's leaves may take from the server's side; of schema only types. */
const LEAVES: ReadonlyMap<Layer, RegExp> = new Map([
  ['agent', /^src\/(?:agent\/|lib\/|seal\/(?:constants|context)\.ts$)/],
  ['banner', /^src\/banner\//],
]);

const MAX_LINES = 250;
const READS_ENVIRONMENT = new Set(['src/config.ts', 'src/cli/run.ts']);
/** Loads migrations by the names that it finds. */
const COMPUTES_IMPORTS = new Set(['src/storage/migrate.ts']);
const IMPURE_IMPORTS = /^(?:random\w*|getRandomValues|generateKey\w*|webcrypto)$/;

export type Sources = ReadonlyMap<string, string>;

export function layerOf(file: string): Layer | null {
  if (ROOT_FILES.has(file)) return 'app';
  const folder = file.split('/')[1] ?? '';
  return folder in PACKAGES ? (folder as Layer) : null;
}

function rankOf(layer: Layer): number {
  return RANKS.findIndex((names) => (names as readonly string[]).includes(layer));
}

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

function internalFault(file: string, layer: Layer, to: string, found: Import): string | null {
  const target = layerOf(to);
  if (target === null) return `${file} imports ${to}, which is in no layer`;
  const mayImport = LEAVES.get(layer);
  if (mayImport) {
    const allowed = mayImport.test(to) || (target === 'schema' && found.typeOnly);
    return allowed ? null : `${file} (${layer}) imports ${to}`;
  }
  if (target === layer) return null;
  if (LEAVES.has(target)) return `${file} (${layer}) imports ${to}, a browser's leaf`;
  if (rankOf(target) < rankOf(layer)) return null;
  const where = rankOf(target) === rankOf(layer) ? 'a sibling' : 'to the right';
  return `${file} (${layer}) imports ${to} (${target}), ${where}`;
}

function externalFault(file: string, layer: Layer, target: string): string | null {
  const name = packageOf(target);
  const allowed = PACKAGES[layer];
  if (allowed.includes(name) || (name.startsWith('node:') && allowed.includes(ANY_NODE))) return null;
  return `${file} (${layer}) imports the package ${name}`;
}

function* faultsOf(file: string, source: string, module: Module): Generator<string> {
  const layer = layerOf(file);
  if (layer === null) {
    yield `${file} is in no layer`;
    return;
  }
  const lines = source.split('\n').length - (source.endsWith('\n') ? 1 : 0);
  if (lines > MAX_LINES) yield `${file} has ${lines} lines`;
  if (module.defaultExport) yield `${file} has a default export`;
  if (module.readsEnvironment && !READS_ENVIRONMENT.has(file)) yield `${file} reads process.env`;
  const pure = !LEAVES.has(layer) && rankOf(layer) < PURE_RANKS;
  for (const impurity of pure ? module.impure : []) yield `${file} (${layer}) uses ${impurity}`;
  for (const found of module.imports) {
    if (found.target === null) {
      if (!COMPUTES_IMPORTS.has(file)) yield `${file} computes what it imports`;
      continue;
    }
    const to = resolve(file, found.target);
    const fault =
      to === null ? externalFault(file, layer, found.target) : internalFault(file, layer, to, found);
    if (fault !== null) yield fault;
    const random = pure && to === null ? found.names.filter((name) => IMPURE_IMPORTS.test(name)) : [];
    for (const name of random) yield `${file} (${layer}) imports ${name}: a Random is handed in`;
  }
}

/** The circles that imports make, type-only ones among them, each told once. */
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

/** Everything that breaks a rule, one sentence each; `sources` by path from the project's root. */
export function architectureFaults(sources: Sources): string[] {
  const modules = new Map([...sources].map(([file, source]) => [file, readModule(file, source)]));
  const faults = [...modules].flatMap(([file, module]) => [
    ...faultsOf(file, sources.get(file) ?? '', module),
  ]);
  return [...faults, ...circles(modules)];
}
