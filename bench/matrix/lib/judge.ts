import { type Classification, classify } from '../../../src/ingest/classify/classify.ts';
import { RULES } from '../../../src/ingest/classify/policy.ts';
import { readFacts } from '../../../src/ingest/read-facts.ts';
import { readSignals } from '../../../src/schema/signals.ts';
import type { Captured } from './types.ts';

export interface Judged extends Classification {
  readonly defenses: readonly string[];
}

/** The classifying stages of the pipeline with the rules of this source tree, on signals and headers that are at hand. */
export function judge({ signals, headers }: Captured): Judged {
  const tier = { headers, https: true, ja4: null, hosting: null };
  const { facts } = readFacts(readSignals(signals), tier);
  return { ...classify(facts, RULES), defenses: facts.defenses };
}
