import { createConsentAppender } from '../../../src/consent/append-store.ts';
import type { AppendRequest } from '../../../src/consent/plan-write.ts';
import type { TermsOf } from '../../../src/consent/terms-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import type { ConsentChoice } from '../../../src/schema/consent.ts';
import { createStateMac, type StateMac } from '../../../src/tenants/state-mac.ts';
import { NOW } from '../../support/make.ts';

export const WRAP_KEY = Buffer.alloc(32, 6);
export const macOf = (kid: string): StateMac => createStateMac(kid, Buffer.alloc(32, 4));
export const termsOf = (kid: string): TermsOf => ({ kid, stateMac: macOf(kid) });
const DAY_MS = 86_400_000;

interface RequestOptions {
  readonly principal?: string;
  readonly purposes?: readonly string[];
  readonly choice?: ConsentChoice;
  readonly gpc?: boolean;
  readonly now?: number;
  readonly notify?: AppendRequest['notify'];
}

export function createRequest(kid: string, options: RequestOptions = {}): AppendRequest {
  const { principal = 'ref-1', purposes = ['ads'], choice = 'granted', gpc, now = NOW } = options;
  const expiresAt = choice === 'granted' ? now + DAY_MS : null;
  const detail = { policyVersion: 2, gpc: gpc ?? false, source: 'backend', expiresAt } as const;
  return {
    kid,
    since: NOW,
    wrapKey: WRAP_KEY,
    stateMac: macOf(kid),
    principal,
    principalId: `id of ${principal}`,
    entries: purposes.map((purpose) => ({ purpose, choice, detail })),
    gpc,
    isGrant: choice === 'granted',
    now,
    notify: options.notify ?? (() => []),
    idempotency: null,
  };
}

export const appender = (database: Database) => createConsentAppender(database);
