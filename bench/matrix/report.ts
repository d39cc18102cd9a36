import { POLICY_VERSION, RULES } from '../../src/ingest/verdict/classify.ts';
import { wilson } from '../../src/lib/wilson.ts';
import type { CorpusResult } from './corpus.ts';
import type { Measured, MeasuredRun, NotRun, Truth } from './lib/types.ts';

/** Writes the tables of docs/classification.md, and finds the goals that the runs miss. */

export interface Results {
  readonly date: string;
  readonly runs: readonly MeasuredRun[];
  readonly notRun: readonly NotRun[];
  readonly corpus: CorpusResult | null;
}

/** Goals: at least 30 of 36 driven browsers are found, no person is, and at most 0.1 % of the corpus. */
const FOUND_SHARE = 30 / 36;
const CORPUS_SHARE = 0.001;
const AUTOMATION = 'undeclared_automation';

const shortClass = (name: string): string => (name === AUTOMATION ? 'automation' : name);
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
const runsOf = ({ runs }: Results, truth: Truth): MeasuredRun[] =>
  runs.filter(({ names }) => names.truth === truth);
/** @returns the verdict after the press, or that at load where nothing was pressed */
const lastOf = (run: MeasuredRun): Measured => run.pressed ?? run.measured;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [row(head), row(head.map(() => '---')), ...rows.map(row)];
}

interface Line {
  readonly name: string;
  readonly truth: Truth;
  readonly isCounted?: (run: MeasuredRun) => boolean;
  readonly isHit: (run: MeasuredRun) => boolean;
}

const isPressed = ({ pressed }: MeasuredRun): boolean => pressed !== null;

const LINES: readonly Line[] = [
  {
    name: 'driven, found at load',
    truth: 'automation',
    isHit: ({ measured }) => measured.class === AUTOMATION,
  },
  {
    name: 'driven, headless, found at load',
    truth: 'automation',
    isCounted: ({ names }) => names.setup.includes('headless'),
    isHit: ({ measured }) => measured.class === AUTOMATION,
  },
  ...[AUTOMATION, 'unknown', 'human'].map(
    (name): Line => ({
      name: `driven and pressed, ${shortClass(name)} after the press`,
      truth: 'automation',
      isCounted: isPressed,
      isHit: ({ pressed }) => pressed?.class === name,
    }),
  ),
  {
    name: 'people called automation, at load or after a press',
    truth: 'person',
    isHit: ({ measured, pressed }) => [measured.class, pressed?.class].includes(AUTOMATION),
  },
  { name: 'people called unknown', truth: 'person', isHit: (run) => lastOf(run).class === 'unknown' },
];

function summaryTable(results: Results): string[] {
  const rows = LINES.map(({ name, truth, isCounted = () => true, isHit }) => {
    const counted = runsOf(results, truth).filter(isCounted);
    if (counted.length === 0) return [name, '-', '-'];
    const found = counted.filter(isHit).length;
    const { low, high } = wilson(found, counted.length);
    const share = `${found} of ${counted.length}: ${percent(found / counted.length)}`;
    return [name, share, `${percent(low)} to ${percent(high)}`];
  });
  return table(['', 'runs', '95 % interval'], rows);
}

/** Counts the runs in which each rule fired, at load or after a press. */
function ruleTable({ runs, corpus }: Results): string[] {
  const fired = ({ measured, pressed }: MeasuredRun): Set<string> =>
    new Set([...measured.rules, ...(pressed?.rules ?? [])]);
  const count = (truth: Truth, id: string): number =>
    runs.filter((run) => run.names.truth === truth && fired(run).has(id)).length;
  const rows = RULES.map(({ id, weight }) =>
    // Formatted as code, because another table of the page also has rows that begin with a rule.
    [`\`${id}\``, weight, count('automation', id), count('person', id), corpus?.byRule[id] ?? 0].map(String),
  );
  return table(['rule', 'weight', 'driven runs', 'runs of people', 'generated people'], rows);
}

const HEAD = [
  'browser',
  'version',
  'driver',
  'set-up',
  'class',
  'score',
  'rules',
  'after a press',
  'defenses',
  'attest',
];

/** Formats the class after the press, with the rules that had not fired at load. */
function pressedCell({ measured, pressed }: MeasuredRun): string {
  if (!pressed) return '-';
  const newRules = pressed.rules.filter((id) => !measured.rules.includes(id));
  return [shortClass(pressed.class), ...newRules].join(' ');
}

function runRow(run: MeasuredRun): string[] {
  const { names, version, measured } = run;
  return [
    names.browser,
    version,
    names.driver,
    names.setup,
    shortClass(measured.class),
    measured.score === null ? '-' : measured.score.toFixed(2),
    measured.rules.join(' ') || '-',
    pressedCell(run),
    measured.defenses.join(' ') || '-',
    measured.needsAttestation ? 'yes' : 'no',
  ];
}

function corpusLines({ corpus }: Results): string[] {
  if (!corpus) return [];
  const share = (name: string): string => percent((corpus.byClass[name] ?? 0) / corpus.rows);
  const rules = Object.entries(corpus.byRule).sort((a, b) => b[1] - a[1]);
  return [
    '',
    '### People by the thousand',
    '',
    `Of ${corpus.rows} rows of fingerprint-generator (seed ${corpus.seed}) ${share('human')} were called human, ` +
      `${share('unknown')} unknown and ${share(AUTOMATION)} automation; ` +
      `${corpus.headless} further rows call themselves headless and were left out. ` +
      `Rules that fired: ${rules.map(([id, count]) => `${id} ${count}`).join(', ') || 'none'}. ` +
      `A row was called automation by: ${[...new Set(corpus.automation)].join('; ') || 'none'}. ` +
      'How a row becomes a bundle is said in `bench/matrix/corpus.ts`.',
  ];
}

const labelOf = ({ names }: NotRun): string => [names.browser, names.driver, names.setup].join(', ');

export function formatMarkdown(results: Results): string {
  const { date, notRun } = results;
  return [
    `Measured on ${date} with \`npm run matrix\` under policy \`${POLICY_VERSION}\`: every browser with a fresh`,
    'profile, one after the other, through the real agent, a proxy that says https, and the real server.',
    '',
    ...summaryTable(results),
    '',
    '### The runs behind each rule',
    '',
    'In how many runs a rule fired, at load or after a press; a rule that another states too is counted with it. N1 and N4 need a proxy',
    'and a network database, which these runs have not. "Generated" are the rows of fingerprint-generator, which press nothing.',
    '',
    ...ruleTable(results),
    '',
    '### Browsers that nothing drives',
    '',
    ...table(HEAD, runsOf(results, 'person').map(runRow)),
    '',
    '### Browsers that a program drives',
    '',
    ...table(HEAD, runsOf(results, 'automation').map(runRow)),
    ...(notRun.length > 0
      ? ['', '### Not run', '', ...notRun.map((run) => `- ${labelOf(run)}: ${run.why}.`)]
      : []),
    ...corpusLines(results),
  ].join('\n');
}

/** @returns a sentence for each missed goal */
export function findShortfalls(results: Results): string[] {
  const driven = runsOf(results, 'automation');
  const found = driven.filter(({ measured }) => measured.class === AUTOMATION).length / driven.length;
  const wronged = runsOf(results, 'person').filter(({ measured, pressed }) =>
    [measured.class, pressed?.class].includes(AUTOMATION),
  );
  const { corpus } = results;
  const share = corpus ? (corpus.byClass[AUTOMATION] ?? 0) / corpus.rows : 0;
  return [
    ...(found < FOUND_SHARE
      ? [`${percent(found)} of the driven runs were found, the goal is ${percent(FOUND_SHARE)}`]
      : []),
    ...wronged.map(
      ({ names }) => `called automation though nothing drives it: ${names.browser}, ${names.setup}`,
    ),
    ...(share > CORPUS_SHARE ? [`${percent(share)} of the corpus were called automation`] : []),
  ];
}
