import type { StaffRole } from '../auth/console-session.ts';
import type { LoginProvider } from '../auth/login.ts';
import type { Config } from '../config.ts';
import type { Embed } from '../consent/embed.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import { type ConcurrencyLimit, makeConcurrencyLimit } from '../http/admission.ts';
import type { Limiter } from '../http/hot.ts';
import type { Actor } from '../lib/act.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';
import type { CheckpointBook } from '../log/checkpoint-files.ts';
import type { LogService } from '../log/service.ts';
import type { DsarDeps } from '../rights/dsar/service.ts';
import type { makeExports } from '../rights/dsar/staff-export-service.ts';
import type { HeldErasures } from '../rights/erase/held-service.ts';
import type { EraseService } from '../rights/erase/service.ts';
import type { OutsideLog } from '../rights/erase/tombstone-files.ts';
import type { RightsApi } from '../rights/service.ts';
import type { Render } from './render.ts';
import type { Translate } from './strings-files.ts';

export interface SignInLimits {
  /** By client. */
  readonly limiter: Limiter;
  /** Whether a state comes back for the first time, on any node. @param until when its sign-in expires */
  readonly isFirstUse: (state: string, until: number) => Promise<boolean>;
}

/** What the console's pages and services are handed. */
export interface Context extends DsarDeps {
  readonly config: Config;
  readonly random: Random;
  /** The public origin; staff sign in there and nowhere else. */
  readonly origin: () => string;
  /** Derived from the server's secret. */
  readonly keys: Readonly<Record<'login' | 'idToken', Uint8Array>>;
  readonly provider: () => Promise<LoginProvider>;
  readonly signInLimits: SignInLimits;
  readonly rights: RightsApi;
  readonly eraser: EraseService;
  readonly held: HeldErasures;
  /** Survives a restore. */
  readonly outside: OutsideLog;
  readonly exports: ReturnType<typeof makeExports>;
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

/** Staff at work, within the one tenant of their token. */
export interface Staff {
  readonly kid: string;
  readonly role: StaffRole;
  /** Keyed reference. */
  readonly ref: string;
  readonly label: string;
}

/** As the audit log knows them. */
export const actorOf = ({ role, ref }: Staff): Actor => ({ role, ref });

/** Bounds the exports and verifications of one tenant, each of which reads a whole trail or a whole log. */
export function makeReadWhole(places: number) {
  const limits = new Map<string, ConcurrencyLimit>();
  /** @throws {Unavailable} when the tenant's places are taken; another tenant's do not count */
  return <T>({ kid }: Pick<Staff, 'kid'>, work: () => Promise<T>): Promise<T> => {
    const limit = limits.get(kid) ?? makeConcurrencyLimit(places);
    limits.set(kid, limit);
    if (limit.isFull()) throw new Unavailable('too many exports and verifications are running', 10);
    return limit.hold(work());
  };
}

/** Theirs. @throws {Refusal} `not-found` when it was removed meanwhile */
export function requireTenant(tenantOf: (kid: string) => ConsentTenant | undefined, kid: string) {
  const tenant = tenantOf(kid);
  if (!tenant) throw new Refusal('not-found');
  return tenant;
}
