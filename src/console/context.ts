import type { LoginProvider } from '../auth/login.ts';
import type { Config } from '../config.ts';
import type { Embed } from '../consent/embed.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import type { Limiter } from '../http/hot.ts';
import type { IngestTenant } from '../ingest/ports.ts';
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import type { CheckpointBook } from '../log/checkpoint-files.ts';
import type { LogService } from '../log/service.ts';
import type { ContestTexts } from '../rights/contests/contest-text.ts';
import type { makeStaffExports } from '../rights/dsar/staff-export-service.ts';
import type { HeldErasures } from '../rights/erase/held-service.ts';
import type { EraseService } from '../rights/erase/service.ts';
import type { OutsideLog } from '../rights/erase/tombstone-files.ts';
import type { RightsApi } from '../rights/service.ts';
import type { Render } from './render.ts';
import type { makeReadWhole } from './staff.ts';
import type { Translate } from './strings-files.ts';

export interface SignInLimits {
  /** By client. */
  readonly limiter: Limiter;
  /** Whether a state comes back for the first time, on any node. @param until when its sign-in expires */
  readonly isFirstUse: (state: string, until: number) => Promise<boolean>;
}

/** What the console's pages and services are handed. */
export interface Context {
  readonly config: Config;
  readonly database: Database;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly ingestTenantOf: (kid: string) => IngestTenant | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** The public origin; staff sign in there and nowhere else. */
  readonly origin: () => string;
  /** Derived from the server's secret. */
  readonly keys: Readonly<Record<'login' | 'idToken', Uint8Array>>;
  readonly provider: () => Promise<LoginProvider>;
  readonly signInLimits: SignInLimits;
  readonly contestTexts: ContestTexts;
  readonly rights: RightsApi;
  readonly eraser: EraseService;
  readonly held: HeldErasures;
  /** Survives a restore. */
  readonly outside: OutsideLog;
  readonly exports: ReturnType<typeof makeStaffExports>;
  readonly readWhole: ReturnType<typeof makeReadWhole>;
  readonly log: LogService;
  readonly book: CheckpointBook;
  /** The banner as it was built. */
  readonly embed: Embed;
  readonly views: string;
  readonly t: Translate;
  readonly render: Render;
  readonly onFault: (requestId: string, error: unknown) => void;
  readonly onLoginFault: (error: unknown) => void;
}
