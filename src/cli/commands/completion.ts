import type { Command } from 'commander';
import { TENANT_SETTING_NAMES } from '../../tenants/settings.ts';
import { type CommandContext, command, example } from '../command-service.ts';
import { misused, print } from '../io-service.ts';

export function define(completion: Command): void {
  completion
    .argument('<shell>', 'bash, zsh or fish')
    .addHelpText('after', example('gpd completion bash > ~/.local/share/bash-completion/completions/gpd'))
    .action(command(printScript));
}

/** The script is generated from the definitions of the commands, so that it cannot lag behind them. */

interface Word {
  readonly word: string;
  readonly about: string;
}

interface CommandNode {
  /** `gpd`, `gpd keys`, `gpd keys rotate` … */
  readonly path: string;
  readonly words: readonly Word[];
  /** Its first argument names a tenant. */
  readonly takesKid: boolean;
}

const optionWords = ({ options }: Command): Word[] =>
  options.map(({ long: longFlag, flags, description }) => ({ word: longFlag ?? flags, about: description }));

/** Lists a command and all below it. @param globalOptions options that every command takes */
function nodesOf(command: Command, path: string, globalOptions: readonly Word[] = []): CommandNode[] {
  const { commands, registeredArguments } = command;
  const names = registeredArguments.map((argument) => argument.name());
  const settings = names.includes('key=value') ? TENANT_SETTING_NAMES : [];
  const words = [
    ...commands.map((child) => ({ word: child.name(), about: child.description() })),
    ...settings.map((name) => ({ word: `${name}=`, about: 'setting' })),
    ...optionWords(command),
    ...globalOptions,
  ];
  const childOptions = path === 'gpd' ? optionWords(command) : globalOptions;
  return [
    { path, words, takesKid: names[0] === 'kid' },
    ...commands.flatMap((child) => nodesOf(child, `${path} ${child.name()}`, childOptions)),
  ];
}

/** Shell command that prints one tenant per line, and nothing where the database cannot be opened. */
const LIST_TENANTS = `gpd tenants list --json 2>/dev/null | grep -o '"kid":"[^"]*"' | cut -d'"' -f4`;

/** The words that bash completes from: subcommands and options, and the tenants where one is an argument. */
const bashWords = ({ words, takesKid }: CommandNode): string =>
  [...words.map(({ word }) => word), ...(takesKid ? ['$(_gpd_tenants)'] : [])].join(' ');

function bash(nodes: readonly CommandNode[]): string[] {
  return [
    `_gpd_tenants() { ${LIST_TENANTS}; }`,
    '_gpd() {',
    '  local word path=gpd i',
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own
    '    word=${COMP_WORDS[i]}',
    '    case "$path $word" in',
    ...nodes.slice(1).map(({ path }) => `      "${path}") path="${path}" ;;`),
    '    esac',
    '  done',
    '  case "$path" in',
    ...nodes.map((node) => `    "${node.path}") word="${bashWords(node)}" ;;`),
    '  esac',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own
    '  if [ "${COMP_WORDS[COMP_CWORD - 1]}" = --tenant ]; then word=$(_gpd_tenants); fi',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own
    '  COMPREPLY=($(compgen -W "$word" -- "${COMP_WORDS[COMP_CWORD]}"))',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own
    '  case "${COMPREPLY[0]}" in *=) compopt -o nospace 2> /dev/null ;; esac',
    '}',
    'complete -o default -F _gpd gpd',
  ];
}

/** zsh reads bash's completions. */
function zsh(nodes: readonly CommandNode[]): string[] {
  return ['#compdef gpd', 'autoload -U +X bashcompinit && bashcompinit', ...bash(nodes)];
}

const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function fish(nodes: readonly CommandNode[]): string[] {
  const lines = ['complete -c gpd -f'];
  for (const { path, words, takesKid } of nodes) {
    const [, ...before] = path.split(' ');
    const seenConditions = before.map((word) => `__fish_seen_subcommand_from ${word}`);
    const further = words.filter(({ word }) => !word.startsWith('-')).map(({ word }) => word);
    const unseenConditions =
      further.length > 0 ? [`not __fish_seen_subcommand_from ${further.join(' ')}`] : [];
    const when = [...seenConditions, ...unseenConditions].join('; and ') || 'true';
    const tenants = quote(`(${LIST_TENANTS})`);
    if (takesKid) lines.push(`complete -c gpd -n ${quote(when)} -a ${tenants} -d tenant`);
    for (const { word, about } of words) {
      const candidate = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`;
      lines.push(`complete -c gpd -n ${quote(when)} ${candidate} -d ${quote(about)}`);
    }
  }
  return lines;
}

const SHELLS = { bash, zsh, fish } as const;

function printScript(_context: CommandContext, shell: string, _options: unknown, { parent }: Command): void {
  if (!Object.hasOwn(SHELLS, shell))
    throw misused(`<shell> ${shell}: must be one of ${Object.keys(SHELLS).join(', ')}`);
  const lines = SHELLS[shell as keyof typeof SHELLS](nodesOf(parent as Command, 'gpd'));
  print({ shell, script: `${lines.join('\n')}\n` }, () => lines);
}
