import { type Classification, classify, RULES } from '../../../src/ingest/verdict/classify.ts';
import { readFacts } from '../../../src/ingest/verdict/facts.ts';
import { readSignals } from '../../../src/schema/signals.ts';
import type { Captured } from './types.ts';

export interface Judged extends Classification {
  readonly defenses: readonly string[];
}

/** Classifies captured signals and headers as ingest does, with the rules of this source tree. */
export function judge({ signals, headers }: Captured): Judged {
  const tier = { headers, https: true, ja4: null, hosting: null };
  const facts = readFacts(readSignals(signals), tier);
  return { ...classify(facts, RULES), defenses: facts.defenses };
}
