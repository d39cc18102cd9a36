import { RULES } from '../../src/ingest/verdict/policy.ts';
import { wilson } from '../../src/lib/wilson.ts';
import { judge } from './lib/judge.ts';
import type { Captured, MeasuredRun, Sides, Truth } from './lib/types.ts';

/** What the runs add up to, apart for those that rules were written with and those that nobody had looked at. */

const SAMPLES = ['in', 'out'] as const;
const CHIP = {
  blink: ['Google Inc. (Intel)', 'ANGLE (Intel, Mesa Intel(R) UHD Graphics 630 (CFL GT2), OpenGL 4.6)'],
  other: ['Intel', 'Intel(R) HD Graphics, or similar'],
} as const;

/** The same bundle as from a machine with a graphics chip; a browser whose WebGL is a defense's keeps what it said. */
function withChip({ signals, headers }: Captured): Captured {
  if (signals.graphics?.renderer?.startsWith('Mozilla')) return { signals, headers };
  const [vendor, renderer] = CHIP[signals.page?.uaData ? 'blink' : 'other'];
  const worker = signals.worker && { ...signals.worker, renderer };
  return {
    headers,
    signals: { ...signals, worker, graphics: { ...signals.graphics, vendor, renderer } as never },
  };
}

const classOf = (side: Sides | null): string | null => side?.measured.class ?? null;
const classWithChip = (side: Sides | null): string | null =>
  side?.captured ? judge(withChip(side.captured)).class : classOf(side);

/** After a press where there was one. */
const lastOf = (run: MeasuredRun): Sides => run.pressed ?? run;
const percent = (share: number): string => (100 * share).toFixed(1);

function cell(runs: readonly MeasuredRun[], hit: (run: MeasuredRun) => boolean): string {
  if (runs.length === 0) return '-';
  const found = runs.filter(hit).length;
  const { low, high } = wilson(found, runs.length);
  return `${found} of ${runs.length}: ${percent(found / runs.length)} % (${percent(low)} to ${percent(high)})`;
}

interface Line {
  readonly name: string;
  readonly truth: Truth;
  readonly of?: (run: MeasuredRun) => boolean;
  readonly hit: (run: MeasuredRun) => boolean;
}

const isPressed = ({ pressed }: MeasuredRun): boolean => pressed !== null;
const headless = ({ names }: MeasuredRun): boolean => /headless|without a screen/.test(names.setup);
const AUTOMATION = 'undeclared_automation';
const isBot = ({ measured }: MeasuredRun): boolean => measured.botd?.bot === true;

const LINES: readonly Line[] = [
  { name: 'driven, found at load', truth: 'automation', hit: (run) => classOf(run) === AUTOMATION },
  {
    name: 'driven, found at load, headless',
    truth: 'automation',
    of: headless,
    hit: (run) => classOf(run) === AUTOMATION,
  },
  {
    name: 'driven, pressed: found at load',
    truth: 'automation',
    of: isPressed,
    hit: (run) => classOf(run) === AUTOMATION,
  },
  {
    name: 'driven, pressed: found after the press',
    truth: 'automation',
    of: isPressed,
    hit: ({ pressed }) => classOf(pressed) === AUTOMATION,
  },
  {
    name: 'driven, pressed: unknown after the press',
    truth: 'automation',
    of: isPressed,
    hit: ({ pressed }) => classOf(pressed) === 'unknown',
  },
  {
    name: 'driven, pressed: human after the press',
    truth: 'automation',
    of: isPressed,
    hit: ({ pressed }) => classOf(pressed) === 'human',
  },
  { name: 'driven, found by BotD', truth: 'automation', hit: isBot },
  {
    name: 'driven, found, with a graphics chip',
    truth: 'automation',
    hit: (run) => classWithChip(lastOf(run)) === AUTOMATION,
  },
  {
    name: 'people called automation',
    truth: 'person',
    hit: (run) => [classOf(run), classOf(run.pressed)].includes(AUTOMATION),
  },
  { name: 'people called unknown', truth: 'person', hit: (run) => classOf(lastOf(run)) === 'unknown' },
  {
    name: 'people called automation, with a graphics chip',
    truth: 'person',
    hit: (run) => [classWithChip(run), classWithChip(run.pressed)].includes(AUTOMATION),
  },
  { name: 'people called a bot by BotD', truth: 'person', hit: isBot },
];

const inSample = (runs: readonly MeasuredRun[], sample: (typeof SAMPLES)[number]): MeasuredRun[] =>
  runs.filter(({ names }) => (names.sample ?? 'in') === sample);

/** A row each: its name, in sample, out of sample. */
export function sampleRows(runs: readonly MeasuredRun[]): string[][] {
  return LINES.map(({ name, truth, of = () => true, hit }) => {
    const chosen = runs.filter((run) => run.names.truth === truth && of(run));
    return [name, ...SAMPLES.map((sample) => cell(inSample(chosen, sample), hit))];
  });
}

export const RULE_HEAD = ['rule', 'weight', 'driven runs', 'runs of people', 'generated people'];

/** A row each: in how many runs a rule fired, at load or after a press. */
export function ruleRows(runs: readonly MeasuredRun[], byRule: Readonly<Record<string, number>>): string[][] {
  const fired = ({ measured, pressed }: MeasuredRun): Set<string> =>
    new Set([...measured.rules, ...(pressed?.measured.rules ?? [])]);
  const count = (truth: Truth, id: string): number =>
    runs.filter((run) => run.names.truth === truth && fired(run).has(id)).length;
  return RULES.map(({ id, weight }) =>
    // In code: the page has one other table whose rows begin with a rule.
    [`\`${id}\``, weight, count('automation', id), count('person', id), byRule[id] ?? 0].map(String),
  );
}

/** The goals for set-ups that nobody had looked at, in words where they are missed. */
export function sampleShortfalls(runs: readonly MeasuredRun[]): string[] {
  const driven = inSample(runs, 'out').filter(({ names }) => names.truth === 'automation');
  const pressed = driven.filter(isPressed);
  const share = (list: readonly MeasuredRun[], name: string): number =>
    list.filter((run) => classOf(lastOf(run)) === name).length / Math.max(1, list.length);
  const [found, human] = [share(pressed, AUTOMATION), share(pressed, 'human')];
  const missed = driven.filter((run) => headless(run) && classOf(lastOf(run)) !== AUTOMATION);
  return [
    ...(pressed.length > 0 && found < 0.8
      ? [`${percent(found)} % of the driven runs out of sample were found after a press, the goal is 80 %`]
      : []),
    ...(human > 0.1
      ? [`${percent(human)} % of the driven runs out of sample were human after a press, the goal is 10 %`]
      : []),
    ...missed.map(({ names }) => `not found though headless: ${names.driver}, ${names.setup}`),
  ];
}
