import { relyingPartyOf } from '../../attest/ceremony.ts';
import { baseUrl } from '../../config.ts';
import { DAY, HOUR, MINUTE } from '../../lib/clock.ts';
import { isLoopback } from '../../lib/ip.ts';
import { isWildcard } from '../../tenants/settings.ts';
import { COSIGN } from '../housekeeping.ts';
import {
  type Checks,
  type Finding,
  fail,
  firstComplaint,
  noneOf,
  pass,
  read,
  skipped,
  some,
  span,
  warn,
} from './check.ts';
import type { Facts } from './gather.ts';
import type { TenantFacts } from './gather-tenants.ts';

/** Tenants, their keys and terms, and their logs; whom gpd asks and tells for them: agents' directories, webhooks and mail. */

/** One finding over all of a list: `badness` is what is said of one; null: nothing is wrong with it. */
const ofEach =
  <One>(list: (facts: Facts) => readonly One[], none: string) =>
  (badness: (one: One, facts: Facts) => string | null, good: string, complaint: Finding) =>
  (facts: Facts): Finding => {
    const all = list(facts);
    if (all.length === 0) return skipped(none);
    return noneOf(
      all.flatMap((one) => badness(one, facts) ?? []),
      good,
      complaint,
    );
  };

const ofTenants = ofEach(({ tenants }) => tenants, 'there are no tenants');
const ofDirectories = ofEach(({ agents }) => agents, 'no directory is listed');
const ofWebhooks = ofEach(({ webhooks }) => webhooks, 'no webhooks are set up');

/** Who is `bad` among the tenants, by name. */
const each = (bad: (tenant: TenantFacts, facts: Facts) => boolean, good: string, complaint: Finding) =>
  ofTenants((tenant, facts) => (bad(tenant, facts) ? tenant.kid : null), good, complaint);

const isPlain = (origin: string): boolean =>
  origin.startsWith('http:') && !isLoopback(new URL(origin).hostname);

const isLocalLog = (origin: string): boolean => isLoopback(new URL(`http://${origin}`).hostname);

const mayAttest = (origin: string, rpId: string): boolean => {
  const party = relyingPartyOf(origin, rpId);
  return party !== null && (rpId === '' || party === rpId || new URL(origin).hostname === rpId);
};

export const TENANT_CHECKS: Checks = {
  'tenants.any': read((_database, { tenants }) =>
    tenants.length > 0 ? pass(some(tenants.map(({ kid }) => kid))) : fail('there is no tenant'),
  ),
  'tenants.readable': read((_database, { damagedTenants }) =>
    noneOf(damagedTenants, 'every tenant can be read', fail('stored rows cannot be read')),
  ),
  'tenants.origins': firstComplaint(
    ofTenants(
      ({ kid, origins }) => origins.filter(isWildcard).map((origin) => `${kid} (${origin})`)[0] ?? null,
      'no origin has a wildcard',
      fail('an origin with a wildcard matches no page'),
    ),
    each(
      (tenant) => tenant.origins.length === 0,
      'every tenant has an origin',
      warn('no origin, so no browser may read an answer'),
    ),
  ),
  'tenants.plain-origins': each(
    (tenant) => tenant.origins.some(isPlain),
    'every origin is https',
    warn('an origin is plain http, where no agent runs'),
  ),
  'tenants.relying-party': each(
    ({ origins, rpId }) => origins.some((origin) => !mayAttest(origin, rpId)),
    'every origin can be a relying party of passkeys',
    warn('no passkeys: an origin is an address, or not below attest.rpId'),
  ),
  'keys.published': each(
    (tenant) => tenant.publishedKeys !== 1,
    'every tenant has one published seal key',
    fail('not exactly one published seal key'),
  ),
  'keys.public': ofTenants(
    ({ kid, foreignKeys }) => (foreignKeys.length > 0 ? `${kid} ${foreignKeys.join(', ')}` : null),
    'every public seal key belongs to its private key',
    fail('a public seal key is not that of its private key'),
  ),
  'keys.age': each(
    (tenant, { now }) => tenant.publishedAt !== null && now - tenant.publishedAt > 365 * DAY,
    'no seal key is older than a year',
    warn('a seal key older than a year'),
  ),
  'keys.staged': each(
    (tenant, { now }) => tenant.stagedAt !== null && now - tenant.stagedAt > 30 * DAY,
    'no generation has been staged for long',
    warn('a generation was staged over a month ago'),
  ),
  'keys.retiring': each(
    (tenant, { now }) => tenant.overdueKeys.some((at) => now - at > 10 * MINUTE),
    'keys past their grace period are overwritten',
    fail('a private key is kept past its grace period'),
  ),
  'keys.symmetric': each(
    (tenant) => tenant.symmetric,
    'no tenant has a shared key',
    warn('a shared key: each of its clients can decrypt bundles'),
  ),
  'apikeys.any': each(
    (tenant) => tenant.activeApiKeys === 0,
    'every tenant has an API key',
    warn('no API key, so no backend can ask for a verdict'),
  ),
  'apikeys.idle': each(
    (tenant) => tenant.idleApiKeys.length > 0,
    'every API key is in use',
    warn('API keys unused for half a year'),
  ),
  'terms.purpose': each(
    (tenant) => !tenant.purposes.includes('device-identification'),
    'every tenant has defined device-identification',
    fail('the purpose device-identification is not defined'),
  ),
  'terms.policy': each(
    (tenant) => tenant.basis === 'ledger' && tenant.consentPolicies === 0,
    'every tenant that requires proven consent has published a policy',
    warn('proven consent is required, and no policy is published'),
  ),
  'terms.notice': firstComplaint(
    each(
      ({ emptyNotices }) => emptyNotices.some((name) => name !== 'notice.authority'),
      'every notice names who is responsible',
      fail('people are not told who is responsible'),
    ),
    each(
      (tenant) => tenant.emptyNotices.length > 0,
      'every notice is filled in',
      warn('the notice to people has gaps'),
    ),
  ),
  'terms.gpc': each(
    ({ optsOut, visits }) => optsOut && visits.gpc * 5 > visits.all,
    'Global Privacy Control refuses at most a fifth of the visits',
    warn('Global Privacy Control refuses more than a fifth of the visits of the last 30 days'),
  ),
  'agent.worker': each(
    ({ visits }) => visits.workerless * 2 > visits.judged,
    'most bundles bring what the worker file sees',
    warn('most bundles of the last 30 days came without the worker file, so its rules never fire'),
  ),
  'terms.weights': each(
    (tenant) => tenant.badPolicy,
    'every policy of weights can be read',
    fail('a policy of weights cannot be read'),
  ),
  'consent.state': each(
    (tenant) => tenant.stateForged,
    'every row that a check reads carries its MAC',
    fail(
      'rows of consent_state, consent_principals, purposes or consent_policies were written without the key',
    ),
  ),
  'log.entries': each(
    ({ log }) => log === null || log.entries !== log.size || !log.lastFits || !log.headFits,
    'size, last entry and head of every log match',
    fail('the log does not match its head'),
  ),
  'log.checkpoint': ofTenants(
    ({ kid, log }) => (log?.checkpointProblem == null ? null : `${kid}: ${log.checkpointProblem}`),
    'every log extends what this node has signed',
    fail('nothing is signed for these logs'),
  ),
  'log.new-entries': ofTenants(
    ({ kid, log }) => (log?.newEntryProblem == null ? null : `${kid}: ${log.newEntryProblem}`),
    'every entry that is not signed yet was written by gpd',
    fail('entries that gpd did not write so'),
  ),
  'log.witnesses': read(({ jobFailures }, { config }) => {
    if (config.witnesses.length === 0) return skipped('GPD_WITNESSES is not set');
    const failed = jobFailures.filter(({ job }) => job === COSIGN);
    const names = failed.map(({ kid, reason }) => `${kid}: ${reason.replace('NotCosigned ', '')}`);
    const isFork = names.some((name) => name.includes(': fork '));
    const make = isFork ? fail : warn;
    const remedy = isFork
      ? 'Run gpd consent verify KID, and compare with what the witness keeps: docs/witnesses.md.'
      : 'Check that the witness answers at its URL and knows the log: docs/witnesses.md.';
    return noneOf(names, 'every witness has cosigned', make('checkpoints that are not cosigned', remedy));
  }),
  'log.origin': firstComplaint(
    each(
      ({ log }, { config }) =>
        log !== null && isLocalLog(log.origin) && !isLoopback(new URL(baseUrl(config)).hostname),
      'no log is named after this machine alone',
      fail(
        'the log was made before base_url was set, and its name could be any machine’s',
        'Before you go live, run gpd init in an empty data directory with base_url set. A live log keeps its name.',
      ),
    ),
    each(
      ({ kid, log }, { config }) =>
        log !== null && log.origin !== `${new URL(baseUrl(config)).host}/ledger/${kid}`,
      'every log is named after the base URL',
      warn('the log is named after another host than the base URL'),
    ),
  ),
  'agents.fresh'({ agents, now }) {
    if (agents.length === 0) return skipped('no directory is listed');
    const fetched = agents.filter(({ source }) => source !== 'pinned');
    const stale = fetched.filter(({ fetchedAt }) => fetchedAt === null || now - fetchedAt > 2 * DAY);
    const names = stale.map(({ url, failure }) => `${url} (${failure ?? 'never tried'})`);
    return noneOf(names, `${agents.length} directories are up to date`, warn('not fetched for two days'));
  },
  'agents.keys': firstComplaint(
    ofDirectories(
      ({ url, usableKeys }) => (usableKeys === 0 ? url : null),
      'every directory has a usable key',
      warn('no usable key'),
    ),
    ofDirectories(
      ({ url, inMilliseconds }) => (inMilliseconds > 0 ? url : null),
      'every validity is in seconds',
      warn('nbf or exp in milliseconds, read as such', 'Tell the agent: RFC 7519 wants seconds.'),
    ),
  ),
  'webhooks.failed': ofWebhooks(
    ({ name, failed }) => (failed > 0 ? `${name} (${failed})` : null),
    'every delivery of the last week arrived or is waiting',
    warn('abandoned'),
  ),
  'webhooks.backlog': ofWebhooks(
    ({ name, waiting, oldestWaitingAt }, { now }) => {
      const age = now - (oldestWaitingAt ?? now);
      return age > HOUR ? `${name} (${waiting}, the oldest for ${span(age)})` : null;
    },
    'nothing has waited for long',
    warn('deliveries wait'),
  ),
  'mail.relay'({ relay, tenants }) {
    const wanted = tenants.filter(({ wantsMail }) => wantsMail).map(({ kid }) => kid);
    if (relay) return relay.problem === null ? pass('the relay answers') : fail(relay.problem);
    return noneOf(wanted, 'no tenant asks for mail', warn('notify.email is set and GPD_SMTP_URL is not'));
  },
  'webhooks.plain'({ webhooks }) {
    const plain = webhooks.filter((webhook) => webhook.plain).map(({ name }) => name);
    return noneOf(plain, 'every target is https', warn('sent over plain http'));
  },
};
