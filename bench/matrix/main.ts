import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { judgeCorpus } from './corpus.ts';
import { judgeAgain, measure } from './lib/measure.ts';
import { missingPrograms } from './lib/programs.ts';
import { openStage } from './lib/stage.ts';
import type { MeasuredRun, NotRun, RunNames } from './lib/types.ts';
import { formatMarkdown, formatText, type Results, shortfalls } from './report.ts';
import { AUTOMATED_CHROMIUM } from './runs/automated-chromium.ts';
import { AUTOMATED_OTHERS } from './runs/automated-others.ts';
import { ELSEWHERE } from './runs/elsewhere.ts';
import { MOVED } from './runs/moved.ts';
import { PEOPLE } from './runs/people.ts';
import { STACK_RUNS } from './runs/stacks.ts';

const USAGE = `usage: npm run matrix -- [options]
  --only REGEX     only runs whose browser, driver and set-up match
  --corpus N       rows of fingerprint-generator to judge (2000; 0 for none)
  --seed N         of the corpus (1)
  --raw DIR        keep what the agent reported of each run, to look at or to judge again
  --judge DIR      open no browser: judge what --raw kept with the rules of this source tree
  --doc FILE       write the tables between the marks of this Markdown file
  --json           print the results as JSON
  --assert         exit 1 when a goal is missed, or REQUIRE_TOOLS=1 and a run could not be made`;

const RUNS = [...PEOPLE, ...MOVED, ...AUTOMATED_CHROMIUM, ...AUTOMATED_OTHERS, ...STACK_RUNS];
const MARKS = ['<!-- matrix: begin -->', '<!-- matrix: end -->'] as const;

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

const labelOf = ({ truth, browser, driver, setup }: RunNames): string =>
  [truth, browser, driver, setup].join(' ');

const fileOf = (names: RunNames): string => `${labelOf(names).replace(/[^A-Za-z0-9]+/g, '-')}.json`;

type Browsers = Pick<Results, 'runs' | 'notRun'>;

async function runAll(only: RegExp, raw: string | undefined): Promise<Browsers> {
  const chosen = RUNS.filter((run) => only.test(labelOf(run)));
  const runs: MeasuredRun[] = [];
  const notRun: NotRun[] = ELSEWHERE.filter(({ names }) => only.test(labelOf(names)));
  if (raw !== undefined) mkdirSync(raw, { recursive: true });
  const stage = await openStage();
  try {
    for (const [index, run] of chosen.entries()) {
      const outcome = await measure(stage, run, `r${index}`);
      if ('why' in outcome) {
        notRun.push(outcome);
        say(`NOT RUN: ${labelOf(run)}: ${outcome.why}`);
        continue;
      }
      runs.push(outcome);
      say(
        `${index + 1}/${chosen.length} ${labelOf(run)}: ${outcome.measured.class}${outcome.pressed ? `, after a press ${outcome.pressed.measured.class}` : ''}`,
      );
      if (raw !== undefined) writeFileSync(join(raw, fileOf(run)), JSON.stringify(outcome));
    }
  } finally {
    await stage.close();
  }
  return { runs, notRun };
}

function judgeAll(directory: string, only: RegExp): Browsers {
  const files = new Set(readdirSync(directory));
  const chosen = RUNS.filter((run) => only.test(labelOf(run)) && files.has(fileOf(run)));
  const lacking = RUNS.filter((run) => only.test(labelOf(run)) && !files.has(fileOf(run)));
  const notRun = lacking.map((run) => ({
    names: run,
    why: missingPrograms(run.programs) ?? run.missing?.() ?? 'no result of it was kept',
  }));
  const elsewhere = ELSEWHERE.filter(({ names }) => only.test(labelOf(names)));
  return {
    runs: chosen.map((run) => judgeAgain(join(directory, fileOf(run)))),
    notRun: [...elsewhere, ...notRun],
  };
}

/** Only what stands between the marks is ours. */
function writeDoc(file: string, results: Results): void {
  const [begin, end] = MARKS;
  const text = readFileSync(file, 'utf8');
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${file} has no lines ${begin} and ${end}`);
  const head = text.slice(0, from + begin.length);
  writeFileSync(file, `${head}\n${formatMarkdown(results)}\n${text.slice(to)}`);
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      corpus: { type: 'string', default: '2000' },
      seed: { type: 'string', default: '1' },
      raw: { type: 'string' },
      judge: { type: 'string' },
      doc: { type: 'string' },
      json: { type: 'boolean', default: false },
      assert: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const only = new RegExp(values.only);
  const browsers = values.judge === undefined ? await runAll(only, values.raw) : judgeAll(values.judge, only);
  const rows = Number(values.corpus);
  const results: Results = {
    date: new Date().toISOString().slice(0, 10),
    ...browsers,
    corpus: rows > 0 ? judgeCorpus(rows, Number(values.seed)) : null,
  };
  if (values.doc !== undefined) writeDoc(values.doc, results);
  const { runs, ...rest } = results;
  // What the agent reported stays out of what is printed.
  const shown = runs.map(({ names, version, measured }) => ({ names, version, measured }));
  console.log(
    values.json
      ? JSON.stringify({ ...rest, runs: shown, shortfalls: shortfalls(results) })
      : formatText(results),
  );
  const lacking = process.env['REQUIRE_TOOLS'] === '1' && results.notRun.length > ELSEWHERE.length;
  return values.assert && (lacking || shortfalls(results).length > 0) ? 1 : 0;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    say(error instanceof Error ? error.message : String(error));
    process.exitCode = 2;
  },
);
