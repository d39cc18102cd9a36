import type { Database, Reader } from './engine.ts';
import { rowsOf } from './sql.ts';

/**
 * Finds objects in the schema that no migration makes. A trigger can keep a row that gpd deletes, and undo
 * what gpd changes, while each statement succeeds.
 */

/** Tables that belong to the migrations or to SQLite itself (sqlite.org/fileformat2.html, section 2.6). */
const TOOL_TABLES = [
  'knex_migrations',
  'knex_migrations_lock',
  'sqlite_sequence',
  'sqlite_stat1',
  'sqlite_stat4',
];

const SQLITE = `SELECT type AS kind, name, CASE WHEN type = 'trigger' THEN tbl_name END AS owner FROM sqlite_master
  WHERE type NOT IN ('table', 'index') OR (type = 'table' AND name NOT IN (SELECT value FROM json_each(?)))
  ORDER BY type, name`;

/** Members of an extension, such as pg_stat_statements in the schema `public`, are not foreign. */
const isMember = (catalog: string): string =>
  `EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = '${catalog}'::regclass AND d.objid = o.oid AND d.deptype = 'e')`;

/**
 * A table of gpd counts as its own even where somebody made it a member of an extension, which would hide its
 * triggers.
 */
const POSTGRES = `WITH own AS (SELECT o.oid, o.relname, o.relkind FROM pg_class o
    WHERE o.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
      AND o.relkind IN ('r', 'p', 'f', 'v', 'm') AND (o.relname = ANY(?) OR NOT ${isMember('pg_class')}))
  SELECT CASE WHEN relkind IN ('v', 'm') THEN 'view' ELSE 'table' END AS kind, relname::text AS name, NULL AS owner
    FROM own WHERE relkind <> 'r' OR relname <> ALL(?)
  UNION ALL SELECT 'trigger', t.tgname::text, own.relname::text FROM pg_trigger t JOIN own ON own.oid = t.tgrelid WHERE NOT t.tgisinternal
  UNION ALL SELECT 'rule', r.rulename::text, own.relname::text FROM pg_rewrite r JOIN own ON own.oid = r.ev_class WHERE r.rulename <> '_RETURN'
  UNION ALL SELECT 'policy', p.polname::text, own.relname::text FROM pg_policy p JOIN own ON own.oid = p.polrelid
  ORDER BY 1, 2`;

interface ForeignObject {
  readonly kind: string;
  readonly name: string;
  /** The table of a trigger, a rule or a policy. */
  readonly owner: string | null;
}

/**
 * A database whose schema holds more than the migrations make: gpd cannot know what its own statements do.
 */
export class ForeignObjects extends Error {
  constructor(objects: readonly string[]) {
    super(`the database ${foreignText(objects)}`);
    this.name = 'ForeignObjects';
  }
}

const MAX_NAMED = 5;

/** The reason why gpd refuses a database with these objects, and the remedy. */
export function foreignText(objects: readonly string[]): string {
  const named = objects.slice(0, MAX_NAMED).join(', ');
  const rest = objects.length > MAX_NAMED ? ` and ${objects.length - MAX_NAMED} more` : '';
  return `has ${named}${rest}, which no migration of gpd makes: find out who made it, then drop it or restore an earlier backup`;
}

/**
 * Reads them by one query. On PostgreSQL only gpd's own schema is looked at.
 * @param tables those that the migrations make
 * @returns texts such as `trigger keep on decisions`
 */
export async function readForeignObjects(
  { kind, read }: Pick<Database, 'kind'> & Reader,
  tables: readonly string[],
): Promise<readonly string[]> {
  const known = [...tables, ...TOOL_TABLES];
  const found: unknown =
    kind === 'sqlite'
      ? await read.raw(SQLITE, [JSON.stringify(known)])
      : await read.raw(POSTGRES, [known, known] as unknown as string[]);
  return rowsOf<ForeignObject>(found).map(({ kind: type, name, owner }) =>
    owner === null ? `${type} ${name}` : `${type} ${name} on ${owner}`,
  );
}

/** @throws {ForeignObjects} */
export async function refuseForeignObjects(database: Database, tables: readonly string[]): Promise<void> {
  const objects = await readForeignObjects(database, tables);
  if (objects.length > 0) throw new ForeignObjects(objects);
}
