import type { BannerResponse } from '../schema/banner.ts';
import type { Purpose } from '../tenants/tenant.ts';
import type { Staff } from './ports.ts';

/** What the overview, the ledger, the keys and the purposes need. */

export interface HourCount {
  readonly hour: number;
  readonly name: string;
  readonly n: number;
}

export interface GenerationView {
  readonly generation: number;
  readonly state: string;
  readonly createdAt: number;
  readonly publishedAt: number | null;
  readonly retiresAt: number | null;
  readonly destroyedAt: number | null;
  /** In the last 30 days. */
  readonly bundles: number;
  readonly lastAt: number | null;
}

export interface OverviewView {
  readonly verdicts: readonly HourCount[];
  readonly countedUntil: number | null;
  readonly consent: readonly HourCount[];
  readonly due: {
    readonly late: number;
    readonly two: number;
    readonly seven: number;
    readonly later: number;
  };
  readonly rules: readonly {
    readonly rule: string;
    readonly text: string;
    readonly upheld: number;
    readonly overturned: number;
  }[];
  readonly keys: readonly GenerationView[];
  readonly floor: number;
  readonly cap: number;
  readonly retention: { readonly days: number; readonly oldest: number | null };
}

export interface LedgerView {
  readonly origin: string;
  readonly vkey: string;
  readonly size: number;
  readonly root: string;
  readonly checkpoint: string;
  readonly isPublic: boolean;
}

export interface InsightPort {
  overview(
    staff: Staff,
    from: { readonly verdicts: number; readonly consent: number },
  ): Promise<OverviewView>;
  ledger(staff: Staff): Promise<LedgerView | null>;
  proof(staff: Staff, seq: number): Promise<string | null>;
  startVerify(staff: Staff): Promise<string>;
  keys(staff: Staff): Promise<readonly GenerationView[]>;
  terms(staff: Staff): Promise<{
    readonly purposes: readonly Purpose[];
    readonly policies: readonly {
      readonly version: number;
      readonly sha256: string;
      readonly material: boolean;
      readonly publishedAt: number;
      readonly text: string;
    }[];
    /** That the banner speaks. */
    readonly languages: readonly string[];
  }>;
  /** What the banner of the tenant would be told, without that the ledger hears of it. */
  banner(
    staff: Staff,
    language: string,
  ): Promise<{ readonly language: string; readonly banner: BannerResponse; readonly words: unknown }>;
}
