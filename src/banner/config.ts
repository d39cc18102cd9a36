/*
 * The answer of GET /v1/consent/banner. The server's schema would bring zod along, so the shape is repeated
 * here; test/banner/types.test.ts keeps both equal.
 */

export interface Purpose {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly gpc: 'opt-out' | 'ask' | 'ignore';
  readonly ttlDays: number;
  /** Places in the tenant's log, to compare with the `definition` of a choice. */
  readonly definition: {
    /** The entry with these words; null: gpd wrote them. */
    readonly seq: number | null;
    /** A choice of an earlier definition is asked again. */
    readonly materialSince: number | null;
    /** A choice of this definition or an earlier one was made while `gpc` was `opt-out`. */
    readonly optOutUntil: number | null;
    /** The last one that was made while `gpc` was `ask`. */
    readonly askUntil: number | null;
  };
}

export interface Config {
  readonly kid: string;
  readonly policy: { readonly version: number; readonly material: number; readonly url: string };
  readonly title: string;
  readonly body: string;
  readonly purposes: readonly Purpose[];
  readonly gpc: boolean;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function isDefinition(value: unknown): value is Purpose['definition'] {
  const { seq, materialSince, optOutUntil, askUntil } = (value ?? {}) as Record<string, unknown>;
  return [seq, materialSince, optOutUntil, askUntil].every((place) => place === null || isCount(place));
}

function isPurpose(value: unknown): value is Purpose {
  const { id, title, description, gpc, ttlDays, definition } = (value ?? {}) as Record<string, unknown>;
  return (
    isText(id) &&
    isText(title) &&
    isText(description) &&
    ['opt-out', 'ask', 'ignore'].includes(gpc as string) &&
    isCount(ttlDays) &&
    isDefinition(definition)
  );
}

/** Null for anything else: what cannot be read cannot be shown, and nothing is granted under it. */
export function readConfig(value: unknown): Config | null {
  const config = (value ?? {}) as Config;
  const { kid, policy, title, body, purposes, gpc } = config;
  const whole =
    isText(kid) &&
    isText(title) &&
    isText(body) &&
    isCount(policy?.version) &&
    isCount(policy.material) &&
    isText(policy.url) &&
    typeof gpc === 'boolean' &&
    Array.isArray(purposes) &&
    purposes.every(isPurpose);
  return whole ? config : null;
}
