import { DAY, HOUR, MINUTE } from '../lib/clock.ts';
import type { TallyRow } from '../rights/tally-store.ts';

/**
 * Counts of visits and choices that identify nobody (ADR 0105). Hours are added up until the sum is at least
 * `floor`, and only such groups are shown. A group never changes afterwards, and each number of the overview
 * is a sum of whole groups, so no subtraction of numbers, ranges or days tells a smaller count.
 */

/** The visits of one class, or the choices of one kind, from the hour `from` to before `until`. */
export interface Group {
  readonly from: number;
  readonly until: number;
  readonly n: number;
}

/** Groups begin again here, so that a page reads a limited number of hours. */
const SPAN = 60 * DAY;

/** @returns from when hours must be read to group those since `from` */
export const startOfSpan = (from: number): number => Math.floor(from / SPAN) * SPAN;

/** A batch may be counted this much later than its hour ends. */
const SETTLED_MS = 5 * MINUTE;

/** @returns the end of the last hour whose counts no longer change; null: nothing was counted yet */
export const settledUntil = (countedUntil: number | null): number | null =>
  countedUntil === null ? null : Math.floor((countedUntil - SETTLED_MS) / HOUR) * HOUR;

/** @param hours in their order, from the start of a span on */
function groupHours(hours: readonly TallyRow[], floor: number): readonly Group[] {
  const groups: Group[] = [];
  let group = null as Group | null;
  for (const { hour, n } of hours) {
    const open = group !== null && group.from >= startOfSpan(hour) ? group : null;
    group = { from: open?.from ?? hour, until: hour + HOUR, n: (open?.n ?? 0) + Number(n) };
    if (group.n < floor) continue;
    groups.push(group);
    group = null;
  }
  return groups;
}

export type GroupsByName = ReadonlyMap<string, readonly Group[]>;

/**
 * @param rows in the order of their hours, from the start of a span on
 * @param until later hours may still change
 */
export function groupByName(
  rows: readonly TallyRow[],
  names: readonly string[],
  { floor, until }: { readonly floor: number; readonly until: number },
): GroupsByName {
  const settled = rows
    .filter(({ hour }) => Number(hour) < until)
    .map((row) => ({ ...row, hour: Number(row.hour) }));
  return new Map(
    names.map((name) => [
      name,
      groupHours(
        settled.filter((row) => row.name === name),
        floor,
      ),
    ]),
  );
}

/** The groups that were completed in a period: each group is counted in one period alone. */
export const groupsIn = (groups: readonly Group[], from: number, until: number): readonly Group[] =>
  groups.filter((group) => group.until > from && group.until <= until);

export const sumOf = (groups: readonly Group[]): number => groups.reduce((sum, { n }) => sum + n, 0);
