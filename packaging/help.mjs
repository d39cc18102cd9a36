// Writes the help text of every command into a folder, for help2man: a file for each, named as its man page. A line of
// standard output is the name of the page, a tab, and what the command does. usage: node packaging/help.mjs FOLDER
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createProgram } from '../dist/cli/gpd.js';

const [folder = '.'] = process.argv.slice(2);

/**
 * @param {import('commander').Command} command
 * @param {string} page
 */
function writeHelp(command, page) {
  writeFileSync(join(folder, page), command.helpInformation());
  process.stdout.write(`${page}\t${command.description().replace(/\.$/, '')}\n`);
  const shown = command.createHelp().visibleCommands(command);
  for (const child of shown.filter((one) => one.name() !== 'help'))
    writeHelp(child, `${page}-${child.name()}`);
}

writeHelp(await createProgram(), 'gpd');
