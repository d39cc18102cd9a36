export interface Goal {
  readonly atMost: number;
}

/** One line of the result. `details` holds what the value was computed from, in plain units. */
export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly goal: Goal | null;
  readonly details: Readonly<Record<string, number | readonly number[]>>;
}

export type Status = 'ok' | 'over' | '-';

export function statusOf(row: Row): Status {
  if (row.goal === null) return '-';
  return row.value <= row.goal.atMost ? 'ok' : 'over';
}

function formatNumber(value: number): string {
  if (Number.isNaN(value)) return 'NOT RUN:';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(2);
}

export function formatTable(rows: readonly Row[]): string {
  const cells = [
    ['NAME', 'VALUE', 'GOAL', ''],
    ...rows.map((row) => [
      row.name,
      `${formatNumber(row.value)} ${row.unit}`,
      row.goal === null ? '-' : `<= ${row.goal.atMost}`,
      statusOf(row),
    ]),
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  return cells
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export function formatJson(rows: readonly Row[], facts: Readonly<Record<string, unknown>>): string {
  const results = rows.map((row) => ({ ...row, goal: row.goal?.atMost ?? null, status: statusOf(row) }));
  return JSON.stringify({ ...facts, results });
}

/** Progress and raw figures, beside the table and never in it. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}
