import {
  askedJson,
  askedRows,
  type Bindings,
  bypassesKnex,
  type ColumnTypes,
  type Hot,
  runHot,
} from './sql.ts';

/** Reads that share a step, as `makeInserts` is for what is written. */

export interface Read {
  /** Of what is asked about, the table `q(i, …)` of `sql`. */
  readonly about: ColumnTypes;
  /** The columns of the answer. */
  readonly columns: readonly string[];
  readonly sql: string;
}

/** The cells of a row in the order of `columns`; a sum is a text on PostgreSQL. */
export type Cells = readonly (string | number | boolean | null)[];

type Rows<T> = readonly (readonly T[])[];

/**
 * All answers as one row, a text of JSON each. A step of a connection is a turn of the thread pool and one of the event
 * loop, and each cell of a row is a call from the driver into V8: both cost more than the JSON does.
 */
function selectAll(reads: readonly Read[]): string {
  const answers = reads.map(({ about, columns, sql }, i) => {
    const cells = `json_group_array(json_array(${columns.join(', ')}))`;
    return `(SELECT ${cells} FROM (${askedJson(about)} ${sql})) AS answer${i}`;
  });
  return `SELECT ${answers.join(', ')}`;
}

async function inOneStep(hot: Hot, select: string, asked: Rows<Bindings>): Promise<Cells[][]> {
  const bindings = asked.map((rows) => JSON.stringify(rows));
  const [row] = await runHot<Record<string, string>>(hot, select, bindings);
  return asked.map((_, i) => JSON.parse(row?.[`answer${i}`] ?? '[]') as Cells[]);
}

async function oneByOne(hot: Hot, reads: readonly Read[], asked: Rows<Bindings>): Promise<Cells[][]> {
  const answers: Cells[][] = [];
  for (const [i, { about, columns, sql }] of reads.entries()) {
    const rows = asked[i] ?? [];
    const q = rows.length === 0 ? null : askedRows(hot, about, rows);
    const found = q ? await runHot<Record<string, string>>(hot, `${q.sql} ${sql}`, q.bindings) : [];
    answers.push(found.map((row) => columns.map((name) => row[name] ?? null)));
  }
  return answers;
}

/**
 * One statement batch in a transaction that bypasses knex, else one after the other.
 * @returns takes what each is asked about, and answers the rows of each
 */
export function makeReads(
  ...reads: readonly Read[]
): (hot: Hot, ...asked: Rows<Bindings>) => Promise<readonly (readonly Cells[])[]> {
  const select = selectAll(reads);
  return (hot, ...asked) => (bypassesKnex(hot) ? inOneStep(hot, select, asked) : oneByOne(hot, reads, asked));
}
