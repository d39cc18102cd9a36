import type { Command } from 'commander';
import { type CommandContext, command, example } from '../command.ts';
import { misused, print } from '../io.ts';

export function define(completion: Command): void {
  completion
    .argument('<shell>', 'bash, zsh or fish')
    .addHelpText('after', example('gpd completion bash > ~/.local/share/bash-completion/completions/gpd'))
    .action(command(printScript));
}

/** `gpd completion bash|zsh|fish`: made from the commands that there are, so that it cannot lag behind them. */

interface Node {
  /** `gpd`, `gpd keys`, `gpd keys rotate` … */
  readonly path: string;
  readonly words: readonly { readonly word: string; readonly about: string }[];
}

function nodesOf({ commands, options }: Command, path: string): Node[] {
  const words = [
    ...commands.map((child) => ({ word: child.name(), about: child.description() })),
    ...options.map(({ long, flags, description }) => ({ word: long ?? flags, about: description })),
  ];
  return [{ path, words }, ...commands.flatMap((child) => nodesOf(child, `${path} ${child.name()}`))];
}

const names = ({ words }: Node): string => words.map(({ word }) => word).join(' ');

function bash(nodes: readonly Node[]): string[] {
  return [
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
    ...nodes.map((node) => `    "${node.path}") word="${names(node)}" ;;`),
    '  esac',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own
    '  COMPREPLY=($(compgen -W "$word" -- "${COMP_WORDS[COMP_CWORD]}"))',
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
  for (const { path, words } of nodes) {
    const [, ...before] = path.split(' ');
    const seen = before.map((word) => `__fish_seen_subcommand_from ${word}`);
    const further = words.filter(({ word }) => !word.startsWith('-')).map(({ word }) => word);
    const none = further.length > 0 ? [`not __fish_seen_subcommand_from ${further.join(' ')}`] : [];
    const when = [...seen, ...none].join('; and ') || 'true';
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
    throw misused(`${shell}: must be one of ${Object.keys(SHELLS).join(', ')}`);
  const lines = SHELLS[shell as keyof typeof SHELLS](nodesOf(parent as Command, 'gpd'));
  print({ shell, script: `${lines.join('\n')}\n` }, () => lines);
}
