/** Types that say who did something and when; the audit log stores them. */

export type ActorRole = 'subject' | 'reviewer' | 'dpo' | 'operator' | 'system';

export interface Actor {
  readonly role: ActorRole;
  /** Keyed reference of the person or key. */
  readonly ref: string;
}

/** The person who makes a change, and the time: the change writes an audit row in its own transaction. */
export interface Act extends Actor {
  readonly at: number;
  /** The id of the API key that was used. */
  readonly apiKey?: string;
}

/** An act on the whole installation: each tenant's log gets a row, with references under its own key. */
export interface InstallationAct {
  /** Undefined for an unknown tenant. */
  readonly actorOf: (kid: string) => Actor | undefined;
  readonly at: number;
}
