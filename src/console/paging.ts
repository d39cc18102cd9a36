import { matchParameter } from './form.ts';

/** Turns the pages of a list: an address names the row that the page comes after or before. */

export interface Turn<Cursor> {
  /** Null for the first page. */
  readonly cursor: Cursor | null;
  /** The page ends before the cursor. */
  readonly isBackward: boolean;
}

/** @param parse answers null for an invalid position, so that an edited address shows the first page */
export function readTurn<Cursor>(
  query: Readonly<Record<string, unknown>>,
  parse: (value: unknown) => Cursor | null,
): Turn<Cursor> {
  const before = parse(query['before']);
  return { cursor: before ?? parse(query['after']), isBackward: before !== null };
}

/** @returns a parser of positions that are one word of this pattern */
export const positionLike =
  (pattern: RegExp) =>
  (value: unknown): string | null =>
    matchParameter(value, pattern)[0] ?? null;

/**
 * Cuts a page of a list and links the pages around it.
 * @param rows in the order of the list, one more than the page shows if there are more
 */
export function turnPage<Row>(
  rows: readonly Row[],
  limit: number,
  { cursor, isBackward }: Turn<unknown>,
  {
    positionOf,
    linkTo,
  }: {
    readonly positionOf: (row: Row) => string;
    /** @param page an empty object for the first page */
    readonly linkTo: (page: Readonly<Record<string, string>>) => string;
  },
) {
  const hasMore = rows.length > limit;
  const shown = isBackward && hasMore ? rows.slice(1) : rows.slice(0, limit);
  const [top, last] = [shown[0], shown.at(-1)];
  const hasPrevious = cursor !== null && (hasMore || !isBackward);
  return {
    shown,
    first: cursor === null ? null : linkTo({}),
    previous: hasPrevious && top !== undefined ? linkTo({ before: positionOf(top) }) : null,
    next: (isBackward || hasMore) && last !== undefined ? linkTo({ after: positionOf(last) }) : null,
  };
}
