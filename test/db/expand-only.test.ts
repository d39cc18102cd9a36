import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/**
 * A node of the old release runs beside the new schema (docs/operate/upgrade.md): a migration adds, and takes away indexes at
 * most. What has to go goes a release later, when nothing reads it any more, and is named here with that release.
 */

const DIRECTORY = new URL('../../migrations/', import.meta.url);

const BREAKS: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['takes a table away', /dropTable|DROP\s+TABLE/i],
  ['takes a column away', /dropColumn|DROP\s+COLUMN/i],
  ['renames', /renameTable|renameColumn|RENAME\s+(?:TO|COLUMN)/i],
  ['changes a column', /\.alter\(|alterNullable|dropNullable|ALTER\s+COLUMN|SET\s+NOT\s+NULL/i],
];

/** A new column of an old table needs a default, or old nodes cannot insert. */
function faultsOf(up: string): string[] {
  const faults = BREAKS.filter(([, pattern]) => pattern.test(up)).map(([description]) => description);
  const altered = up.match(/alterTable\([\s\S]*?\n {2}\}\)/g) ?? [];
  const needy = altered.join('\n').match(/^.*notNullable\(\)(?!.*defaultTo).*$/gm) ?? [];
  return needy.length > 0 ? [...faults, 'adds a column that old nodes do not fill'] : faults;
}

describe('migrations only expand', () => {
  const names = readdirSync(DIRECTORY).filter((name) => name.endsWith('.js'));

  it('so do all of them', () => {
    const faults = names.flatMap((name) =>
      faultsOf(readFileSync(new URL(name, DIRECTORY), 'utf8')).map((fault) => `${name} ${fault}`),
    );
    expect(faults).toEqual([]);
  });

  const alter = (line: string): string =>
    `  await knex.schema.alterTable('links', (t) => {\n    ${line}\n  });`;

  it.each([
    ["  await knex.schema.dropTable('links');", 'takes a table away'],
    [alter("t.dropColumn('a');"), 'takes a column away'],
    ["  await knex.raw('ALTER TABLE links RENAME COLUMN a TO b');", 'renames'],
    ["  await knex.raw('ALTER TABLE links ALTER COLUMN a TYPE text');", 'changes a column'],
    [alter("t.text('a').notNullable();"), 'adds a column that old nodes do not fill'],
    ["  await knex.schema.createTable('a', (t) => {\n    t.text('kid').notNullable();\n  });"],
    [alter("t.text('b').notNullable().defaultTo('');")],
    ["  await knex.raw('DROP INDEX links_kid');"],
  ])('%j: %s', (text, ...faults) => {
    expect(faultsOf(text)).toEqual(faults);
  });
});
