// Writes the help text of every command into a folder for help2man, one file per man page. For each it prints a line with the name
// of the page, a tab, and the description of the command. usage: node packaging/help.mjs FOLDER
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
