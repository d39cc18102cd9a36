import { type Connection, type Rows, runPrepared } from './sqlite-prepared.ts';

/**
 * Several statements in one step. Each step of a connection is a turn of the thread pool and one of the event loop, which
 * cost more than a small statement does; a trigger runs its statements without them. The trigger and the view that
 * it stands on are temporary: they are the connection's own and in no file (sqlite.org/lang_createtrigger.html).
 */
export interface Together {
  readonly view: string;
  /** Each takes one parameter and answers no rows. */
  readonly statements: readonly string[];
}

/** What was asked for once, to be defined before the next transaction: inside of one, its rollback would undo it. */
const wanted = new Set<Together>();
const defined = new WeakMap<Connection, Set<Together>>();

export function makeTogether(view: string, statements: readonly string[]): Together {
  return { view, statements };
}

function define(connection: Connection, { view, statements }: Together): Promise<void> {
  const columns = statements.map((_, i) => `p${i}`).join(', ');
  const nothing = statements.map(() => 'NULL').join(', ');
  const body = statements.map((sql, i) => `${sql.replace('?', `NEW.p${i}`)};`).join('\n');
  const ddl = `CREATE TEMP VIEW IF NOT EXISTS ${view} (${columns}) AS SELECT ${nothing};
    CREATE TEMP TRIGGER IF NOT EXISTS ${view}_all INSTEAD OF INSERT ON ${view} BEGIN ${body} END;`;
  return new Promise((resolve, reject) => {
    connection.exec(ddl, (error) => (error ? reject(error) : resolve()));
  });
}

/** Before a transaction: what an earlier one wanted is there from now on. */
export async function defineTogether(connection: Connection): Promise<void> {
  const known = defined.get(connection) ?? new Set();
  if (known.size === wanted.size) return;
  defined.set(connection, known);
  for (const together of wanted) {
    if (known.has(together)) continue;
    await define(connection, together);
    known.add(together);
  }
}

/** In a transaction. One by one the first time, and together from the next transaction on. */
export async function runTogether(connection: Connection, together: Together, bindings: Rows): Promise<Rows> {
  const { view, statements } = together;
  if (defined.get(connection)?.has(together) === true) {
    const values = statements.map(() => '?').join(', ');
    return runPrepared(connection, `INSERT INTO ${view} VALUES (${values})`, bindings);
  }
  wanted.add(together);
  for (const [i, sql] of statements.entries()) await runPrepared(connection, sql, [bindings[i]]);
  return [];
}
