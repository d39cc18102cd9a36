import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Copy, DockerfileParser, type Instruction, type PropertyInstruction } from 'dockerfile-ast';

/** packaging/Containerfile as instructions, and each as what a shell would do for it. */

export const CONTAINERFILE = fileURLToPath(new URL('../../packaging/Containerfile', import.meta.url));

export interface Step {
  readonly keyword: string;
  readonly text: string;
  readonly words: readonly string[];
  /** The exec form; null for the shell form. */
  readonly exec: readonly string[] | null;
  /** `--from` and the like. */
  readonly flags: Readonly<Record<string, string>>;
  readonly properties: Readonly<Record<string, string>>;
}

export interface Stage {
  readonly name: string | null;
  readonly image: string;
  readonly steps: readonly Step[];
}

export interface Containerfile {
  readonly text: string;
  /** ARG before the first FROM. */
  readonly args: Readonly<Record<string, string>>;
  readonly stages: readonly Stage[];
}

/** `["a", "b"]`, behind flags or a word too. */
function execForm(text: string): readonly string[] | null {
  const list = /(?:^|\s)(\[.*\])$/.exec(text)?.[1];
  return list === undefined ? null : (JSON.parse(list) as string[]);
}

function stepOf(instruction: Instruction): Step {
  const keyword = instruction.getKeyword();
  const text = instruction.getArgumentsContent() ?? '';
  const words = instruction.getArguments().map((argument) => argument.getValue());
  const flags = 'getFlags' in instruction ? (instruction as Copy).getFlags() : [];
  const properties =
    'getProperties' in instruction ? (instruction as PropertyInstruction).getProperties() : [];
  return {
    keyword,
    text,
    words,
    exec: execForm(text),
    flags: Object.fromEntries(flags.map((flag) => [flag.getName(), flag.getValue() ?? ''])),
    properties: Object.fromEntries(properties.map((each) => [each.getName(), each.getValue() ?? ''])),
  };
}

export function readContainerfile(text = readFileSync(CONTAINERFILE, 'utf8')): Containerfile {
  const args: Record<string, string> = {};
  const stages: { name: string | null; image: string; steps: Step[] }[] = [];
  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    const step = stepOf(instruction);
    if (step.keyword === 'FROM') {
      const [image = '', , name] = step.words;
      stages.push({ name: name ?? null, image, steps: [] });
    } else if (stages.length === 0) Object.assign(args, step.properties);
    else stages.at(-1)?.steps.push(step);
  }
  return { text, args, stages };
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** COPY as cp does it: a folder's content into a folder, files into a folder that ends with a slash. */
function copy(step: Step, context: string): string[] {
  const from = step.flags['from'] === undefined ? context : '';
  const [to = '', ...sources] = [...step.words].reverse();
  return sources.reverse().map((source) => {
    const path = quoted(`${from}/${source}`.replaceAll('//', '/'));
    const into = to.endsWith('/')
      ? 'mkdir -p "$to" && cp -a "$path" "$to"'
      : '{ mkdir -p "$(dirname "$to")"; if [ -d "$path" ]; then mkdir -p "$to"; cp -a "$path"/. "$to"; else cp -a "$path" "$to"; fi; }';
    return `path=${path} to=${quoted(to)}; ${into}`;
  });
}

/** A stage's steps as root of a machine that stands in for its image. */
export function shellOf(stage: Stage, context: string): string[] {
  return stage.steps.flatMap((step) => {
    switch (step.keyword) {
      case 'WORKDIR':
        return [`mkdir -p ${quoted(step.words[0] ?? '')} && cd ${quoted(step.words[0] ?? '')}`];
      case 'ENV':
        return Object.entries(step.properties).map(([name, value]) => `export ${name}=${quoted(value)}`);
      case 'COPY':
        return copy(step, context);
      case 'RUN':
        return [`( ${step.text} )`];
      default:
        return [];
    }
  });
}

/** The last one of its kind, which is the one that counts. */
export function last(stage: Stage, keyword: string): Step | undefined {
  return stage.steps.findLast((step) => step.keyword === keyword);
}
