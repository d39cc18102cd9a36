import { type Cell, csvRecord } from '../../lib/text.ts';
import type { ContestResponse } from '../../schema/rights.ts';
import type { DsarDecision } from './service.ts';

/** `decisions.csv` of the archive: one row a decision. */

type Column = readonly [
  name: string,
  read: (decision: DsarDecision, contest: ContestResponse | undefined) => Cell,
];

type Plain = { [N in keyof DsarDecision]: DsarDecision[N] extends Cell ? N : never }[keyof DsarDecision];

const plainColumns = (...names: readonly Plain[]): readonly Column[] =>
  names.map((name) => [name, (decision) => decision[name]]);

const COLUMNS: readonly Column[] = [
  ...plainColumns('requestId', 'decidedAt', 'class', 'classText', 'suspectScore', 'confidence', 'visitorId'),
  ...plainColumns('declaredAgentId', 'needsAttestation'),
  ['attested', (decision) => decision.attested?.by ?? null],
  ['rules', ({ rules }) => rules.map(({ id, weight }) => `${id} (${weight})`).join('; ')],
  ['rulesText', ({ rules }) => rules.map(({ text }) => text).join(' ')],
  ['defenses', ({ defenses }) => defenses.join('; ')],
  ...plainColumns('policyVersion', 'overridden'),
  ['whatWouldHaveChanged', (decision) => decision.whatWouldHaveChanged.text],
  ...plainColumns('restricted', 'contestId'),
  ['contestStatus', (_decision, contest) => contest?.status ?? null],
  ['contestOutcome', (_decision, contest) => contest?.outcome ?? null],
  ['contestStatement', (_decision, contest) => contest?.statement ?? null],
  ['contestReason', (_decision, contest) => contest?.reason ?? null],
  ...plainColumns('context'),
];

export const CSV_COLUMNS: readonly string[] = COLUMNS.map(([name]) => name);

/** Excel takes a file without this mark for one in the character set of the country. */
const BYTE_ORDER_MARK = '\uFEFF';

export const CSV_HEADER: string = BYTE_ORDER_MARK + csvRecord(CSV_COLUMNS);

export function decisionRecord(decision: DsarDecision, contest: ContestResponse | undefined): string {
  return csvRecord(COLUMNS.map(([, readCell]) => readCell(decision, contest)));
}
