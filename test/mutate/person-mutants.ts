import type { SubjectTable } from '../../src/rights/person-map.ts';

/** Every row of the map of a person with one of its values changed. */

type Rows = Readonly<Record<string, SubjectTable>>;

export interface Mutant {
  readonly name: string;
  readonly map: Rows;
}

/** A list without one of its values, another word for a word, the other of two: what a slip of the hand would leave. */
function changes(value: unknown): unknown[] {
  if (Array.isArray(value))
    return value.map((_, i) => value.filter((_one, j) => i !== j)).concat(value.length > 1 ? [[]] : []);
  if (value === true) return [false];
  if (value === false) return [true];
  if (value === null) return ['decisions'];
  if (value === 'emptied' || value === 'scanned') return ['stays'];
  if (value === 'cascades' || value === 'stays') return ['emptied'];
  return [undefined];
}

function changedAges(row: SubjectTable): [string, SubjectTable][] {
  const { ages } = row;
  if (!ages) return [];
  const [column, is] = ages.since;
  const since = [column, is === '<' ? '<=' : '<'] as const;
  const parts = Object.keys(ages).filter((part) => part !== 'since');
  return [
    ['ages.since', { ...row, ages: { ...ages, since } }],
    ...parts.map((part): [string, SubjectTable] => [
      `ages.${part}`,
      { ...row, ages: { ...ages, [part]: undefined } },
    ]),
  ];
}

function changedRows(row: SubjectTable): [string, SubjectTable][] {
  const whole = Object.entries(row).flatMap(([property, value]) =>
    changes(value).map((to): [string, SubjectTable] => [
      `${property} = ${JSON.stringify(to) ?? 'none'}`,
      { ...row, [property]: to },
    ]),
  );
  return [...whole, ...changedAges(row)];
}

export const mutantsOf = (map: Rows): Mutant[] =>
  Object.entries(map).flatMap(([table, row]) =>
    changedRows(row).map(([what, changed]) => ({
      name: `${table}: ${what}`,
      map: { ...map, [table]: changed },
    })),
  );

export const mutantAt = (map: Rows, number: string | undefined): Mutant | undefined =>
  number === undefined ? undefined : mutantsOf(map)[Number(number)];
