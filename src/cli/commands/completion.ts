import type { Command } from 'commander';
import { TENANT_SETTING_NAMES } from '../../tenants/settings.ts';
import { type CommandContext, command, example } from '../command.ts';
import { misused, print } from '../io.ts';

export function define(completion: Command): void {
  completion
    .argument('<shell>', 'bash, zsh or fish')
    .addHelpText('after', example('gpd completion bash > ~/.local/share/bash-completion/completions/gpd'))
    .action(command(printScript));
}

/** `gpd completion bash|zsh|fish`: made from the commands that there are, so that it cannot lag behind them. */

interface Word {
  readonly word: string;
  readonly about: string;
}

interface Node {
  /** `gpd`, `gpd keys`, `gpd keys rotate` … */
  readonly path: string;
  readonly words: readonly Word[];
  /** Its first argument names a tenant. */
  readonly takesKid: boolean;
}

const optionWords = ({ options }: Command): Word[] =>
  options.map(({ long, flags, description }) => ({ word: long ?? flags, about: description }));

/** @param everywhere options that every command takes */
function nodesOf(command: Command, path: string, everywhere: readonly Word[] = []): Node[] {
  const { commands, registeredArguments } = command;
  const names = registeredArguments.map((argument) => argument.name());
  const settings = names.includes('key=value') ? TENANT_SETTING_NAMES : [];
  const words = [
    ...commands.map((child) => ({ word: child.name(), about: child.description() })),
    ...settings.map((name) => ({ word: `${name}=`, about: 'setting' })),
    ...optionWords(command),
    ...everywhere,
  ];
  const below = path === 'gpd' ? optionWords(command) : everywhere;
  return [
    { path, words, takesKid: names[0] === 'kid' },
    ...commands.flatMap((child) => nodesOf(child, `${path} ${child.name()}`, below)),
  ];
}

/** A line for each tenant; nothing where the database cannot be opened. */
const LIST_TENANTS = `gpd tenants list --json 2>/dev/null | grep -o '"kid":"[^"]*"' | cut -d'"' -f4`;

/** The words that bash completes from: subcommands and options, and the tenants where one is an argument. */
const bashWords = ({ words, takesKid }: Node): string =>
  [...words.map(({ word }) => word), ...(takesKid ? ['$(_gpd_tenants)'] : [])].join(' ');

function bash(nodes: readonly Node[]): string[] {
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
function zsh(nodes: readonly Node[]): string[] {
  return ['#compdef gpd', 'autoload -U +X bashcompinit && bashcompinit', ...bash(nodes)];
}

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function fish(nodes: readonly Node[]): string[] {
  const lines = ['complete -c gpd -f'];
  for (const { path, words, takesKid } of nodes) {
    const [, ...before] = path.split(' ');
    const seen = before.map((word) => `__fish_seen_subcommand_from ${word}`);
    const further = words.filter(({ word }) => !word.startsWith('-')).map(({ word }) => word);
    const none = further.length > 0 ? [`not __fish_seen_subcommand_from ${further.join(' ')}`] : [];
    const when = [...seen, ...none].join('; and ') || 'true';
    const tenants = quoted(`(${LIST_TENANTS})`);
    if (takesKid) lines.push(`complete -c gpd -n ${quoted(when)} -a ${tenants} -d tenant`);
    for (const { word, about } of words) {
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`;
      lines.push(`complete -c gpd -n ${quoted(when)} ${what} -d ${quoted(about)}`);
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
