import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/**
 * `@c15t/backend` as its documents say to run it under Node, with as durable a SQLite database as gpd's. Packages come
 * from a folder of their own: peers are no dependency.
 */

const [packages = '', file = ''] = process.argv.slice(2);
/** @type {(name: string) => any} */
const load = createRequire(join(packages, 'package.json'));
const { c15tInstance } = load('@c15t/backend');
const { kyselyAdapter } = load('@c15t/backend/db/adapters/kysely');
const { DB } = load('@c15t/backend/db/schema');
const { migrator } = load('@c15t/backend/db/migrator');
const { Kysely, SqliteDialect } = load('kysely');
const Sqlite = load('better-sqlite3');

const database = new Sqlite(file);
for (const pragma of ['journal_mode=WAL', 'synchronous=FULL', 'foreign_keys=ON']) database.pragma(pragma);
const adapter = kyselyAdapter({
  db: new Kysely({ dialect: new SqliteDialect({ database }) }),
  provider: 'sqlite',
});
const migration = await migrator({ db: DB.client(adapter), schema: 'latest' });
if ('execute' in migration) await migration.execute();
const c15t = c15tInstance({
  appName: 'bench',
  trustedOrigins: ['https://shop.example'],
  adapter,
  logger: { level: 'error' },
});

/** @param {import('node:http').IncomingMessage} request */
async function toRequest(request) {
  /** @type {Buffer[]} */
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const headers = new Headers(/** @type {Record<string, string>} */ (request.headers));
  const init = { method: request.method ?? 'GET', headers };
  const body = chunks.length > 0 ? { body: Buffer.concat(chunks) } : {};
  return new Request(`http://localhost${request.url}`, { ...init, ...body });
}

/** @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response */
async function answerRequest(request, response) {
  const answer = await c15t.handler(await toRequest(request));
  const body = Buffer.from(await answer.arrayBuffer());
  response.writeHead(answer.status, { ...Object.fromEntries(answer.headers), 'content-length': body.length });
  response.end(body);
}

const server = createServer((request, response) => void answerRequest(request, response));
server.keepAliveTimeout = 65_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' ? address?.port : 0 })}\n`);
});
process.on('SIGTERM', () => process.exit(0));
