export type Goal = { readonly atMost: number } | { readonly atLeast: number };

/** Further ratios of the same two servers. */
export interface Beside {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly rss: number;
}

/** One line of the result. `details` has the figures from which the value was computed, in plain units. */
export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly goal: Goal | null;
  readonly beside?: Partial<Beside>;
  readonly details: Readonly<Record<string, number | readonly number[]>>;
}

export type Status = 'ok' | 'over' | 'under' | '-';

function statusOf({ goal, value }: Row): Status {
  if (goal === null) return '-';
  if ('atMost' in goal) return value <= goal.atMost ? 'ok' : 'over';
  return value >= goal.atLeast ? 'ok' : 'under';
}

export const isMissed = (row: Row): boolean => ['over', 'under'].includes(statusOf(row));

export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return 'NOT RUN:';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(2);
}

export function formatGoal(goal: Goal | null): string {
  if (goal === null) return '-';
  return 'atMost' in goal ? `<= ${goal.atMost}` : `>= ${goal.atLeast}`;
}

const EXTRA_COLUMNS = ['rate', 'p50', 'p99', 'p999', 'rss'] as const;

function cellsOf(row: Row): string[] {
  const extraCells = EXTRA_COLUMNS.map((name) => {
    const value = row.beside?.[name];
    return value === undefined ? '' : formatNumber(value);
  });
  return [
    row.name,
    `${formatNumber(row.value)} ${row.unit}`,
    formatGoal(row.goal),
    statusOf(row),
    ...extraCells,
  ];
}

export function formatTable(rows: readonly Row[]): string {
  const cells = [['NAME', 'VALUE', 'GOAL', '', 'RATE', 'P50', 'P99', 'P99.9', 'RSS'], ...rows.map(cellsOf)];
  const widths = cells[0]?.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  return cells
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths?.[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export function formatJson(rows: readonly Row[], facts: Readonly<Record<string, unknown>>): string {
  const results = rows.map((row) => ({ ...row, status: statusOf(row) }));
  return JSON.stringify({ ...facts, results });
}

/** Prints progress and raw figures on stderr; the table goes to stdout. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}
