export type ActorRole = 'subject' | 'reviewer' | 'dpo' | 'operator' | 'system';

export interface Actor {
  readonly role: ActorRole;
  /** Keyed reference. */
  readonly ref: string;
}

/** Who changes something, and when: the change leaves a row in the audit log, in its own transaction. */
export interface Act extends Actor {
  readonly at: number;
  /** Id of the API key that it came by. */
  readonly apiKey?: string;
}

/** The same of the whole installation: each tenant's log has a row, and refers to its actors under its own key. */
export interface InstallationAct {
  /** Undefined for a tenant of whom nothing is known. */
  readonly actorOf: (kid: string) => Actor | undefined;
  readonly at: number;
}
