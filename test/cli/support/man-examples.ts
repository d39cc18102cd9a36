import type { Command } from 'commander';

/** An example of a command or an option that is no more would be worse than none. */

function named(command: Command, word: string): Command | undefined {
  return command.commands.find((child) => child.name() === word);
}

/** What is wrong with it, or null; what comes after a redirection is the shell's. */
export function exampleFault(program: Command, line: string): string | null {
  const [first, ...words] = line.split(/ [<>|] /)[0]?.split(' ') ?? [];
  if (first !== program.name()) return `${line}: it does not begin with ${program.name()}`;
  let command = program;
  while (words[0] !== undefined) {
    const child = named(command, words[0]);
    if (child === undefined) break;
    command = child;
    words.shift();
  }
  const known = new Set(command.options.map(({ long }) => long));
  const option = words.find((word) => word.startsWith('--') && !known.has(word.split('=')[0]));
  if (option !== undefined) return `${line}: ${command.name()} has no ${option}`;
  if (command === program || (command.commands.length > 0 && command.options.every(isCommon)))
    return `${line}: there is no such command`;
  const wanted = command.registeredArguments.filter(({ required }) => required).length;
  const given = words.filter((word, i) => !word.startsWith('--') && !isValue(command, words[i - 1])).length;
  return given < wanted ? `${line}: ${command.name()} wants ${wanted} arguments` : null;
}

function isCommon({ long }: { readonly long?: string | null }): boolean {
  return long === '--json' || long === '--config';
}

/** Whether the word after this one belongs to it. */
function isValue(command: Command, before: string | undefined): boolean {
  const option = command.options.find(({ long }) => long === before);
  return option !== undefined && (option.required || option.optional);
}
