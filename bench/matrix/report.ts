import { POLICY_VERSION } from '../../src/ingest/verdict/policy.ts';
import type { CorpusResult } from './corpus.ts';
import type { MeasuredRun, NotRun, Sides, Truth } from './lib/types.ts';
import { RULE_HEAD, ruleRows, sampleRows, sampleShortfalls } from './summary.ts';

/** The tables, for a terminal and for the documentation, and what they add up to. */

export interface Results {
  readonly date: string;
  readonly runs: readonly MeasuredRun[];
  readonly notRun: readonly NotRun[];
  readonly corpus: CorpusResult | null;
}

/** At least 30 of 36 automated browsers, no person, and at most 0.1 % of the corpus. */
const FOUND_SHARE = 30 / 36;
const CORPUS_SHARE = 0.001;

const HEAD = [
  'browser',
  'version',
  'driver',
  'set-up',
  'sample',
  'class',
  'score',
  'rules',
  'after a press',
  'defenses',
  'attest',
  'BotD',
];

const SHORT: Readonly<Record<string, string>> = { undeclared_automation: 'automation' };
const shortClass = (name: string): string => SHORT[name] ?? name;

/** The class, with the rules that had not fired at load. */
function pressedCell({ measured, pressed }: MeasuredRun): string {
  if (!pressed) return '-';
  const more = pressed.measured.rules.filter((id) => !measured.rules.includes(id));
  return [shortClass(pressed.measured.class), ...more].join(' ');
}

function cellsOf(run: MeasuredRun): string[] {
  const { names, version, measured } = run;
  const { botd, score } = measured;
  return [
    names.browser,
    version,
    names.driver,
    names.setup,
    names.sample ?? 'in',
    shortClass(measured.class),
    score === null ? '-' : score.toFixed(2),
    measured.rules.join(' ') || '-',
    pressedCell(run),
    measured.defenses.join(' ') || '-',
    measured.needsAttestation ? 'yes' : 'no',
    botd === null ? '-' : botd.bot ? (botd.kind ?? 'bot') : 'no',
  ];
}

const ofTruth = ({ runs }: Results, truth: Truth): MeasuredRun[] =>
  runs.filter(({ names }) => names.truth === truth);

const countClass = (runs: readonly MeasuredRun[], name: string): number =>
  runs.filter(({ measured }) => measured.class === name).length;

const countBotd = (runs: readonly MeasuredRun[]): number =>
  runs.filter(({ measured }) => measured.botd?.bot === true).length;

const percent = (part: number, whole: number): string =>
  `${((100 * part) / Math.max(1, whole)).toFixed(1)} %`;

/** One sentence a line. */
function summaryLines(results: Results): string[] {
  const [people, driven] = [ofTruth(results, 'person'), ofTruth(results, 'automation')];
  const found = countClass(driven, 'undeclared_automation');
  const lines: string[] = [];
  if (driven.length > 0)
    lines.push(
      `Of ${driven.length} automated runs ${found} were found as automation (${percent(found, driven.length)}), ` +
        `${countClass(driven, 'unknown')} were unknown and ${countClass(driven, 'human')} were missed; ` +
        `BotD found ${countBotd(driven)}.`,
    );
  if (people.length > 0)
    lines.push(
      `Of ${people.length} runs that nothing drove ${countClass(people, 'undeclared_automation')} were called automation, ` +
        `${countClass(people, 'unknown')} unknown, ${countClass(people, 'human')} human and ` +
        `${countClass(people, 'refused')} were not looked at, because they send Global Privacy Control; ` +
        `BotD called ${countBotd(people)} a bot.`,
    );
  const { corpus } = results;
  if (corpus) {
    const share = (name: string): string => percent(corpus.byClass[name] ?? 0, corpus.rows);
    lines.push(
      `Of ${corpus.rows} rows of fingerprint-generator (seed ${corpus.seed}) ${share('human')} were called human, ` +
        `${share('unknown')} unknown and ${share('undeclared_automation')} automation; ` +
        `${corpus.headless} further rows call themselves headless and were left out.`,
    );
  }
  return lines;
}

/** What the goals miss, in words; empty when all are reached. */
export function shortfalls(results: Results): string[] {
  const people = ofTruth(results, 'person');
  const driven = ofTruth(results, 'automation').filter(({ names }) => names.sample !== 'out');
  const found = countClass(driven, 'undeclared_automation');
  const isHit = (side: Sides | null): boolean => side?.measured.class === 'undeclared_automation';
  const hit = people.filter((run) => isHit(run) || isHit(run.pressed));
  const { corpus } = results;
  const share = corpus ? (corpus.byClass['undeclared_automation'] ?? 0) / corpus.rows : 0;
  return [
    ...(driven.length > 0 && found / driven.length < FOUND_SHARE
      ? [
          `${percent(found, driven.length)} of the automated runs in sample were found, the goal is ${percent(30, 36)}`,
        ]
      : []),
    ...hit.map(({ names }) => `called automation though nothing drives it: ${names.browser}, ${names.setup}`),
    ...sampleShortfalls(results.runs),
    ...(share > CORPUS_SHARE ? [`${percent(share, 1)} of the corpus were called automation`] : []),
  ];
}

const SAMPLE_HEAD = ['', 'in sample', 'out of sample'];

function textTable(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

const label = ({ names }: NotRun): string => [names.browser, names.driver, names.setup].join(', ');

export function formatText(results: Results): string {
  const table = (truth: Truth): string[] => textTable([HEAD, ...ofTruth(results, truth).map(cellsOf)]);
  const { corpus } = results;
  return [
    'BROWSERS THAT NOTHING DRIVES',
    ...table('person'),
    '',
    'BROWSERS THAT A PROGRAM DRIVES',
    ...table('automation'),
    '',
    ...results.notRun.map((run) => `NOT RUN: ${label(run)}: ${run.why}`),
    '',
    ...summaryLines(results),
    '',
    ...textTable([SAMPLE_HEAD, ...sampleRows(results.runs)]),
    '',
    ...(corpus ? [`Rules in the corpus: ${rulesOf(corpus)}`] : []),
    ...(corpus?.automation ?? []).map((rules) => `Called automation in the corpus: ${rules}`),
    ...shortfalls(results).map((line) => `GOAL MISSED: ${line}`),
  ].join('\n');
}

function rulesOf({ byRule }: CorpusResult): string {
  const rules = Object.entries(byRule).sort((a, b) => b[1] - a[1]);
  return rules.length === 0 ? 'none' : rules.map(([id, count]) => `${id} ${count}`).join(', ');
}

function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [row(head), row(head.map(() => '---')), ...rows.map(row)];
}

export function formatMarkdown(results: Results): string {
  const { corpus } = results;
  return [
    `Measured on ${results.date} with \`npm run matrix\` under policy \`${POLICY_VERSION}\`: every browser with a fresh`,
    'profile, one after the other, through the real agent, a proxy that says https, and the real server. Class and',
    'rules are those of the verdict; BotD is `@fingerprintjs/botd`, asked on the same page right after.',
    '',
    ...summaryLines(results).map((line) => `- ${line}`),
    '',
    '### In sample and out of sample',
    '',
    'Out of sample: no rule was written or changed while looking at these set-ups, and the first result stands. In sample: the rules',
    'were written with them, or with set-ups like them. "Pressed": the page saw one press and `update()` was called. In brackets the 95 %',
    'interval of Wilson, as if the runs were drawn at random, which they are not: they are one machine without a graphics chip. "With a',
    'graphics chip" computes the same bundles with the name of an Intel chip in place of the software renderer.',
    '',
    ...markdownTable(SAMPLE_HEAD, sampleRows(results.runs)),
    '',
    '### The runs behind each rule',
    '',
    'In how many runs a rule fired, at load or after a press; a rule that another states too is counted with it. N1 and N4 need a proxy',
    'and a network database, which these runs have not. "Generated" are the rows of fingerprint-generator, which press nothing.',
    '',
    ...markdownTable(RULE_HEAD, ruleRows(results.runs, results.corpus?.byRule ?? {})),
    '',
    '### Browsers that nothing drives',
    '',
    ...markdownTable(HEAD, ofTruth(results, 'person').map(cellsOf)),
    '',
    '### Browsers that a program drives',
    '',
    ...markdownTable(HEAD, ofTruth(results, 'automation').map(cellsOf)),
    '',
    '### Not run',
    '',
    ...results.notRun.map((run) => `- ${label(run)}: ${run.why}.`),
    ...(corpus
      ? [
          '',
          '### People by the thousand',
          '',
          `Rules that fired in the ${corpus.rows} rows: ${rulesOf(corpus)}. A row was called automation by: ${
            [...new Set(corpus.automation)].join('; ') || 'none'
          }. How a row becomes a bundle is said in \`bench/matrix/corpus.ts\`.`,
        ]
      : []),
  ].join('\n');
}
