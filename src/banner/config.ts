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
  /** Numbers of entries in the tenant's log, to compare with the `definition` of a choice. */
  readonly definition: {
    /** The entry that defines the purpose in these words; null if gpd wrote them. */
    readonly seq: number | null;
    /** Choices made under this definition or an earlier one are asked again. */
    readonly outdatedUntil: number | null;
    /** Choices made under this definition or an earlier one were made while `gpc` was `opt-out`. */
    readonly optOutUntil: number | null;
    /** Choices made under this definition or an earlier one were made while `gpc` was at least `ask`. */
    readonly askUntil: number | null;
  };
}

export interface Config {
  readonly kid: string;
  readonly policy: { readonly version: number; readonly material: number; readonly url: string };
  readonly siteName: string;
  readonly imprintUrl: string;
  readonly title: string;
  readonly body: string;
  readonly purposes: readonly Purpose[];
  readonly gpc: boolean;
  /** The days for which a refusal is remembered, unless what is asked changes. */
  readonly refusalDays: number;
  /** The banner's words in the language; absent for English, which the script has. */
  readonly words?: Readonly<Record<string, string>> | undefined;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function isPurpose(value: unknown): value is Purpose {
  const { id, title, description, gpc, ttlDays, definition } = (value ?? {}) as Record<string, unknown>;
  return (
    isText(id) &&
    isText(title) &&
    isText(description) &&
    ['opt-out', 'ask', 'ignore'].includes(gpc as string) &&
    isCount(ttlDays) &&
    Object.values(definition ?? { definition }).every((seq) => seq === null || isCount(seq))
  );
}

/**
 * @returns null if a field is missing or malformed: the banner asks nothing under terms that it cannot read
 */
export function readConfig(value: unknown): Config | null {
  const config = (value ?? {}) as Config;
  const { kid, policy, title, body, purposes, gpc, refusalDays } = config;
  // An older server, or a page that has kept its markup, sends neither.
  const { siteName = '', imprintUrl = '' } = config;
  const isWhole =
    isText(kid) &&
    isText(siteName) &&
    isText(imprintUrl) &&
    isText(title) &&
    isText(body) &&
    isCount(policy?.version) &&
    isCount(policy.material) &&
    isText(policy.url) &&
    typeof gpc === 'boolean' &&
    isCount(refusalDays) &&
    Array.isArray(purposes) &&
    purposes.every(isPurpose);
  return isWhole ? { ...config, siteName, imprintUrl } : null;
}
