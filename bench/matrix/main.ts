import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { judgeCorpus } from './corpus.ts';
import { measure } from './lib/measure.ts';
import { openStage } from './lib/stage.ts';
import type { MeasuredRun, NotRun, RunNames } from './lib/types.ts';
import { findShortfalls, formatMarkdown, type Results } from './report.ts';
import { DRIVEN } from './runs/driven.ts';
import { PEOPLE } from './runs/people.ts';

const USAGE = `usage: npm run matrix -- [options]
  --only REGEX     only runs whose browser, driver and set-up match
  --corpus N       rows of fingerprint-generator to judge (2000; 0 for none)
  --seed N         of the corpus (1)
  --doc FILE       write the tables between the marks of this Markdown file
  --assert         exit 1 when a goal is missed, or REQUIRE_TOOLS=1 and a run could not be made`;

const RUNS = [...PEOPLE, ...DRIVEN];
const MARKS = ['<!-- matrix: begin -->', '<!-- matrix: end -->'] as const;

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

const labelOf = ({ truth, browser, driver, setup }: RunNames): string =>
  [truth, browser, driver, setup].join(' ');

async function runAll(only: RegExp): Promise<Pick<Results, 'runs' | 'notRun'>> {
  const chosen = RUNS.filter((run) => only.test(labelOf(run)));
  const runs: MeasuredRun[] = [];
  const notRun: NotRun[] = [];
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
      const pressed = outcome.pressed ? `, after a press ${outcome.pressed.class}` : '';
      say(`${index + 1}/${chosen.length} ${labelOf(run)}: ${outcome.measured.class}${pressed}`);
    }
  } finally {
    await stage.close();
  }
  return { runs, notRun };
}

/** Replaces only the text between the marks; the rest of the page is written by hand. */
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
      doc: { type: 'string' },
      assert: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const rows = Number(values.corpus);
  const results: Results = {
    date: new Date().toISOString().slice(0, 10),
    ...(await runAll(new RegExp(values.only))),
    corpus: rows > 0 ? judgeCorpus(rows, Number(values.seed)) : null,
  };
  if (values.doc === undefined) console.log(formatMarkdown(results));
  else writeDoc(values.doc, results);
  const missed = findShortfalls(results);
  for (const line of missed) say(`GOAL MISSED: ${line}`);
  const lacking = process.env['REQUIRE_TOOLS'] === '1' && results.notRun.length > 0;
  return values.assert && (lacking || missed.length > 0) ? 1 : 0;
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
