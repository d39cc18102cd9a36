import { type Classification, classify } from '../../../src/ingest/classify/classify.ts';
import { recogniseDefenses } from '../../../src/ingest/classify/defenses.ts';
import { RULES } from '../../../src/ingest/classify/policy.ts';
import { readNetwork } from '../../../src/ingest/network.ts';
import { readAgent } from '../../../src/ingest/user-agent.ts';
import type { Captured } from './types.ts';

export interface Judged extends Classification {
  readonly defenses: readonly string[];
}

/** The classifying stages of the pipeline with the rules of this source tree, on signals and headers that are at hand. */
export function judge({ signals, headers }: Captured): Judged {
  const network = readNetwork({ headers, https: true, ja4: null, hosting: null });
  const agent = readAgent(signals.page?.userAgent ?? network.userAgent);
  const defenses = recogniseDefenses(signals, agent);
  const incomplete = signals.screen === null || signals.media === null || signals.graphics === null;
  return { ...classify({ signals, network, agent, defenses, incomplete }, RULES), defenses };
}
