import type { Actor } from '../lib/act.ts';
import { actorRef } from './reference.ts';

/** Where an operator's name comes from: the account at the command line, or the API key. */
export type OperatorSource = 'gpd cli' | 'gpd api key';

export function operatorActor(rightsKey: Uint8Array, source: OperatorSource, name: string): Actor {
  return { role: 'operator', ref: actorRef(rightsKey, source, name) };
}
