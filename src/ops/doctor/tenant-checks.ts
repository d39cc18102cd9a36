import { baseUrl } from '../../config.ts';
import { DAY, MINUTE } from '../../lib/clock.ts';
import { isLoopback } from '../../lib/ip.ts';
import { type Check, type Finding, fail, pass, skipped, some, warn } from './check.ts';
import type { Facts, TenantFacts } from './facts.ts';

/** Tenants, their keys and terms, and their logs. */

interface Complaint {
  readonly status: 'warn' | 'fail';
  /** Followed by the kids that it is about. */
  readonly about: string;
  readonly remedy: string;
}

/** One finding over all tenants: who is `bad`, by name. */
function each(bad: (tenant: TenantFacts, facts: Facts) => boolean, good: string, complaint: Complaint) {
  return (facts: Facts): Finding => {
    if (facts.tenants.length === 0) return skipped('there are no tenants');
    const found = facts.tenants.filter((tenant) => bad(tenant, facts)).map(({ kid }) => kid);
    if (found.length === 0) return pass(good);
    const make = complaint.status === 'fail' ? fail : warn;
    return make(`${complaint.about}: ${some(found)}`, complaint.remedy);
  };
}

function judgeTenants({ tenants, database }: Facts): Finding {
  if ('failure' in database) return skipped('the database cannot be read');
  return tenants.length > 0
    ? pass(some(tenants.map(({ kid }) => kid)))
    : fail('there is no tenant', 'Run gpd tenants add KID --origin URL.');
}

function judgeDamaged({ damagedTenants, database }: Facts): Finding {
  if ('failure' in database) return skipped('the database cannot be read');
  return damagedTenants.length === 0
    ? pass('every tenant can be read')
    : fail(
        `stored rows cannot be read: ${some(damagedTenants)}`,
        'Restore a backup: a server does not serve these tenants, and serves all others.',
      );
}

function judgeCheckpoints({ tenants }: Facts): Finding {
  if (tenants.length === 0) return skipped('there are no tenants');
  const bad = tenants.flatMap(({ kid, log }) =>
    log?.checkpointProblem == null ? [] : [`${kid}: ${log.checkpointProblem}`],
  );
  return bad.length === 0
    ? pass('every log extends what this node has signed')
    : fail(
        `nothing is signed for these logs: ${some(bad)}`,
        'Run gpd consent verify KID; docs/verify-a-proof.md says how to go on.',
      );
}

const isPlain = (origin: string): boolean =>
  origin.startsWith('http:') && !isLoopback(new URL(origin).hostname);

const TENANT_CHECKS_PER: readonly Check<Facts>[] = [
  {
    id: 'tenants.origins',
    judge: each((tenant) => tenant.origins.length === 0, 'every tenant has an origin', {
      status: 'warn',
      about: 'no origin, so no browser may read an answer',
      remedy: 'Run gpd tenants set KID origins=https://….',
    }),
  },
  {
    id: 'tenants.plain-origins',
    judge: each((tenant) => tenant.origins.some(isPlain), 'every origin is https', {
      status: 'warn',
      about: 'an origin is plain http, where no agent runs',
      remedy: 'Run gpd tenants set KID origins=https://….',
    }),
  },
  {
    id: 'keys.published',
    judge: each((tenant) => tenant.publishedKeys !== 1, 'every tenant has one published seal key', {
      status: 'fail',
      about: 'not exactly one published seal key',
      remedy: 'Run gpd keys rotate KID.',
    }),
  },
  {
    id: 'keys.age',
    judge: each(
      (tenant, { now }) => tenant.publishedAt !== null && now - tenant.publishedAt > 365 * DAY,
      'no seal key is older than a year',
      { status: 'warn', about: 'a seal key older than a year', remedy: 'Run gpd keys rotate KID.' },
    ),
  },
  {
    id: 'keys.staged',
    judge: each(
      (tenant, { now }) => tenant.stagedAt !== null && now - tenant.stagedAt > 30 * DAY,
      'no generation waits for long',
      {
        status: 'warn',
        about: 'a generation was staged over a month ago',
        remedy: 'Run gpd keys rotate KID, which publishes it.',
      },
    ),
  },
  {
    id: 'keys.retiring',
    judge: each(
      (tenant, { now }) => tenant.overdueKeys.some((at) => now - at > 10 * MINUTE),
      'keys whose grace is over are overwritten',
      {
        status: 'fail',
        about: 'a private key outlives its grace',
        remedy: 'Start gpd serve, or run gpd keys destroy KID GENERATION.',
      },
    ),
  },
  {
    id: 'keys.symmetric',
    judge: each((tenant) => tenant.symmetric, 'nobody seals to a shared key', {
      status: 'warn',
      about: 'a shared key, which its clients can open bundles with',
      remedy: 'Move the clients to the published key.',
    }),
  },
  {
    id: 'apikeys.any',
    judge: each((tenant) => tenant.activeApiKeys === 0, 'every tenant has an API key', {
      status: 'warn',
      about: 'no API key, so no backend can ask for a verdict',
      remedy: 'Run gpd apikeys create KID --scope secret --name NAME.',
    }),
  },
  {
    id: 'apikeys.idle',
    judge: each((tenant) => tenant.idleApiKeys.length > 0, 'every API key is in use', {
      status: 'warn',
      about: 'API keys that nobody used for half a year',
      remedy: 'Run gpd apikeys list, and gpd apikeys revoke what nobody needs.',
    }),
  },
  {
    id: 'terms.purpose',
    judge: each(
      (tenant) => !tenant.purposes.includes('device-identification'),
      'every tenant has defined device-identification',
      {
        status: 'fail',
        about: 'the purpose device-identification is not defined',
        remedy: 'Run gpd consent purposes set KID device-identification --title TITLE.',
      },
    ),
  },
  {
    id: 'terms.policy',
    judge: each(
      (tenant) => tenant.basis === 'ledger' && tenant.consentPolicies === 0,
      'who proves consent has published a policy',
      {
        status: 'warn',
        about: 'consent is proven and no policy was ever published',
        remedy: 'Run gpd consent policies KID --publish FILE.',
      },
    ),
  },
  {
    id: 'terms.notice',
    judge: each((tenant) => tenant.emptyNotices.length > 0, 'every notice is filled in', {
      status: 'warn',
      about: 'the notice to people has gaps',
      remedy: 'Run gpd tenants set KID notice.controller=… notice.contact=… notice.authority=….',
    }),
  },
  {
    id: 'terms.weights',
    judge: each((tenant) => tenant.badPolicy, 'every policy of weights can be read', {
      status: 'fail',
      about: 'a policy of weights cannot be read',
      remedy: 'Run gpd tenants policy KID with a file that is valid.',
    }),
  },
  {
    id: 'consent.state',
    judge: each((tenant) => tenant.stateForged, 'every row that a check reads carries its MAC', {
      status: 'fail',
      about:
        'somebody wrote to consent_state, consent_principals, purposes or consent_policies without the key',
      remedy: 'Restore the last backup that fits; until then the server answers 503 from these rows.',
    }),
  },
  {
    id: 'log.entries',
    judge: each(
      ({ log }) => log === null || log.entries !== log.size || !log.lastFits || !log.headFits,
      'size, last entry and head of every log fit',
      {
        status: 'fail',
        about: 'the log does not fit its head',
        remedy: 'Run gpd consent verify KID, then restore the last backup that fits.',
      },
    ),
  },
  { id: 'log.checkpoint', judge: judgeCheckpoints },
  {
    id: 'log.origin',
    judge: each(
      ({ kid, log }, { config }) =>
        log !== null && log.origin !== `${new URL(baseUrl(config)).host}/ledger/${kid}`,
      'every log is named after the base URL',
      {
        status: 'warn',
        about: 'the log is named after another host than the base URL',
        remedy: 'Keep the old name answering: a log’s origin never changes.',
      },
    ),
  },
];

export const TENANT_CHECKS: readonly Check<Facts>[] = [
  { id: 'tenants.any', judge: judgeTenants },
  { id: 'tenants.readable', judge: judgeDamaged },
  ...TENANT_CHECKS_PER,
];
