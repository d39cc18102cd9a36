import { RULES } from '../ingest/verdict/classify.ts';
import type { Verdict } from '../ingest/verdict/verdict.ts';
import { DAY, HOUR } from '../lib/clock.ts';
import type { VisitorClass } from '../schema/responses.ts';

/** The shop's traffic before the demo begins, so that its numbers look like those of a real shop. */

/** Half a year: the longest range of the overview and the period before it. */
const HISTORY_DAYS = 181;
/** Decisions are stored for the newest hours alone; for older ones there are only their counts. */
const STORED_HOURS = 26;
/** The hours over which a number of visits that somebody asks for is spread. */
const SPREAD_HOURS = 14 * 24;

/** People an hour, from midnight UTC on. */
const PEOPLE = [
  ...[62, 55, 51, 50, 52, 58, 74, 96, 118, 132, 141, 146],
  ...[150, 144, 139, 141, 149, 162, 178, 184, 171, 148, 112, 81],
];
/** From Sunday on. */
const WEEK = [1.1, 0.94, 0.9, 0.92, 0.97, 1.06, 1.18];

/** @returns a number from 0 to 1 that follows from both and looks random: the demo is the same each time */
function chance(at: number, salt: number): number {
  const wave = Math.sin((at / HOUR) * 12.9898 + salt * 78.233) * 43_758.5453;
  return wave - Math.floor(wave);
}

export interface PastHour {
  readonly hour: number;
  readonly counts: Readonly<Record<VisitorClass, number>>;
  readonly choices: Readonly<Record<string, number>>;
}

/** A scraper comes every night; one night in nine it stays for an hour and takes everything. */
function automatedIn(hour: number): number {
  const time = new Date(hour);
  const isNight = time.getUTCHours() === 2;
  const isLong = chance(Math.floor(hour / DAY), 1) < 1 / 9;
  return Math.round(6 + 12 * chance(hour, 2)) + (isNight ? (isLong ? 190 : 55) : 0);
}

function countHour(hour: number, first: number): PastHour {
  const time = new Date(hour);
  const growth = 0.72 + (0.28 * (hour - first)) / (HISTORY_DAYS * DAY);
  const usual = (PEOPLE[time.getUTCHours()] ?? 0) * (WEEK[time.getUTCDay()] ?? 1) * growth;
  const people = Math.round(usual * (0.9 + 0.2 * chance(hour, 3)));
  const part = (share: number, salt: number): number =>
    Math.round(people * share * (0.6 + 0.8 * chance(hour, salt)));
  return {
    hour,
    counts: {
      human: people,
      undeclared_automation: automatedIn(hour),
      unknown: part(0.04, 4),
      declared_agent: part(0.03, 5),
    },
    choices: {
      granted: part(0.1, 6),
      denied: part(0.034, 7),
      withdrawn: part(0.006, 8),
      'gpc-opt-out': part(0.005, 9),
    },
  };
}

const visitsIn = (hours: readonly PastHour[]): number =>
  hours.reduce((sum, { counts }) => sum + Object.values(counts).reduce((a, b) => a + b), 0);

/** Scales the visits of all hours; what rounding drops counts in a later one, so the sum is exact. */
function scaleVisits(hours: readonly PastHour[], factor: number): readonly PastHour[] {
  let exact = 0;
  let given = 0;
  return hours.map((hour) => {
    const counts = Object.entries(hour.counts).map(([name, n]) => {
      exact += n * factor;
      const scaled = Math.round(exact) - given;
      given += scaled;
      return [name, scaled] as const;
    });
    return { ...hour, counts: Object.fromEntries(counts) as PastHour['counts'] };
  });
}

interface Past {
  /** Hours whose visits are only counted. */
  readonly counted: readonly PastHour[];
  /** Later hours, whose decisions are stored. */
  readonly stored: readonly PastHour[];
}

/** Each hour before the one of `now`. @param visits decisions to store in two weeks; null: those of a day */
export function pastHours(now: number, visits: number | null): Past {
  const last = Math.floor(now / HOUR) * HOUR;
  const first = last - HISTORY_DAYS * DAY;
  const hours = Array.from({ length: HISTORY_DAYS * 24 }, (_, i) => countHour(first + i * HOUR, first));
  const from = now - (visits === null ? STORED_HOURS : SPREAD_HOURS) * HOUR;
  const [counted, stored] = [
    hours.filter(({ hour }) => hour < from),
    hours.filter(({ hour }) => hour >= from),
  ];
  if (visits === null) return { counted, stored };
  const factor = visits / visitsIn(stored);
  return { counted: scaleVisits(counted, factor), stored: scaleVisits(stored, factor) };
}

const FIRED: Readonly<Record<VisitorClass, readonly (readonly string[])[]>> = {
  human: [[], [], [], ['W6']],
  declared_agent: [[]],
  undeclared_automation: [['A1', 'A2', 'W4'], ['A1'], ['A2']],
  unknown: [['M2'], ['M2', 'W6']],
};
const CONSENT = {
  purposes: ['device-identification'],
  gpc: false,
  gpcSource: 'none',
  version: 1,
  issuedAt: 0,
  basis: 'asserted',
} as const;
const AGENTS = ['https://agent.shopping.example', 'https://crawler.search.example'];

const firedRules = (ids: readonly string[]): Verdict['rules'] =>
  RULES.filter(({ id }) => ids.includes(id)).map(({ id, weight, kind }) => ({ id, weight, kind }));

/** The verdicts of an hour, without their ids. */
export function verdictsOf({ hour, counts }: PastHour, policyVersion: string) {
  return Object.entries(counts).flatMap(([name, n]) =>
    Array.from({ length: n }, (_, i): Omit<Verdict, 'requestId'> => {
      const visitorClass = name as VisitorClass;
      const pick = chance(hour, name.length * 1000 + i);
      const choices = FIRED[visitorClass];
      const rules = firedRules(choices[Math.floor(pick * choices.length)] ?? []);
      const score = Math.min(
        1,
        rules.reduce((sum, { weight }) => sum + weight, 0),
      );
      const isBot = visitorClass === 'undeclared_automation';
      return {
        decidedAt: hour + Math.floor(((i + pick) / (n + 1)) * HOUR),
        class: visitorClass,
        durable: null,
        epoch: null,
        confidence: 0,
        suspectScore: score,
        smartSignals: { bot: isBot, incognito: false, tampered: false, inconsistency: 0 },
        needsAttestation: false,
        declaredAgentId: visitorClass === 'declared_agent' ? (AGENTS[i % AGENTS.length] ?? null) : null,
        consentState: { ...CONSENT, purposes: [...CONSENT.purposes], issuedAt: hour },
        rules,
        defenses: [],
        overridden: false,
        monitor: false,
        incomplete: false,
        policyVersion,
      };
    }),
  );
}
