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

  const inUp = (text: string): string => `export async function up(knex) {\n${text}\n}`;

  it.each([
    ['takes a table away', "  await knex.schema.dropTable('links');"],
    [
      'takes a column away',
      "  await knex.schema.alterTable('links', (t) => {\n    t.dropColumn('a');\n  });",
    ],
    ['renames', "  await knex.raw('ALTER TABLE links RENAME COLUMN a TO b');"],
    ['changes a column', "  await knex.raw('ALTER TABLE links ALTER COLUMN a TYPE text');"],
    [
      'adds a column that old nodes do not fill',
      "  await knex.schema.alterTable('links', (t) => {\n    t.text('a').notNullable();\n  });",
    ],
  ])('knows what %s', (description, text) => {
    expect(faultsOf(inUp(text))).toEqual([description]);
  });

  it('lets a table, an index and a column with a default be added', () => {
    const text = [
      "  await knex.schema.createTable('a', (t) => {\n    t.text('kid').notNullable();\n  });",
      "  await knex.schema.alterTable('links', (t) => {\n    t.text('b').notNullable().defaultTo('');\n    t.text('c');\n  });",
      "  await knex.raw('DROP INDEX links_kid');",
    ];
    expect(faultsOf(inUp(text.join('\n')))).toEqual([]);
  });
});
