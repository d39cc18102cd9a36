import type { NetworkFacts } from '../../http/request.ts';
import type { Signals } from '../../schema/signals.ts';
import type { AgentFacts } from '../user-agent.ts';
import type { Defense } from './defenses.ts';

/** Everything a rule may look at. */
export interface Facts {
  readonly signals: Signals;
  readonly network: NetworkFacts;
  /** Read from `navigator.userAgent`, or from the header when the bundle does not say. */
  readonly agent: AgentFacts;
  /** Privacy defenses that were recognised; they exempt only the rules that name them. */
  readonly defenses: readonly Defense[];
  /** A group was badly typed, or screen, media or graphics is missing: never `human`. */
  readonly incomplete: boolean;
}

/** A automation, T tamper, M medium, W weak, N network (signals.md section 2). */
export type RuleKind = 'A' | 'T' | 'M' | 'W';

/** Facts that more than one rule reads. */
export type Fact = 'debugger' | 'worker-brands' | 'screen-size' | 'no-pointer' | 'no-graphics-hardware';

export interface Rule {
  readonly id: string;
  readonly kind: RuleKind;
  /** What it adds to suspectScore. */
  readonly weight: number;
  /** Plain words for the person concerned. */
  readonly text: string;
  readonly fires: (facts: Facts) => boolean;
  /** What the rule reads, where others read it too; else its id. Of those that fire the heaviest counts (`countFired`). */
  readonly fact?: Fact;
  /** The kind it counts as together with the others that fired, where an honest browser explains the pattern. */
  readonly demote?: (others: ReadonlySet<string>) => RuleKind | null;
}
