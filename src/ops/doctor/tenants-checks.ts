import { relyingPartyOf } from '../../attest/ceremony.ts';
import { baseUrl } from '../../config.ts';
import { untranslatedLanguages } from '../../consent/purpose-words.ts';
import { countInvalid } from '../../consent/state-mac-store.ts';
import { areTermsAuthentic } from '../../consent/terms-store.ts';
import { readPolicies } from '../../ingest/policy-store.ts';
import { isOwnPublicKey } from '../../keys/generation.ts';
import { LEDGER_SECRET, SYMMETRIC_SECRET, tenantSecretContext } from '../../keys/master-key.ts';
import { leafHash } from '../../ledger/merkle.ts';
import { createNoteSigner } from '../../ledger/note.ts';
import { DAY, MINUTE } from '../../lib/clock.ts';
import { isLoopback } from '../../lib/ip.ts';
import { NotSigned, readSigned } from '../../log/checkpoint-service.ts';
import { COSIGN_JOB } from '../../log/cosign-service.ts';
import { checkNewEntries, type LogHead } from '../../log/entries-store.ts';
import { readVisits } from '../../rights/tally-store.ts';
import { readTenantSecret } from '../../tenants/secrets-store.ts';
import { createTenantStore } from '../../tenants/tenant-store.ts';
import { readJobFailures } from '../job-store.ts';
import { type Check, ofTenants } from './check.ts';
import type { DoctorContext } from './context-service.ts';
import { about, type Findings, fail, listSome, pass, perTenant, Skipped, warn } from './finding.ts';
import { readLog } from './inspect-store.ts';

/** Checks of the tenants, their keys and terms, and their logs. */

async function* checkReadable(context: DoctorContext): Findings {
  const { readable, damaged } = await context.tenants();
  const restore = 'Restore a backup: the server serves all tenants except these.';
  yield* about(damaged, fail('stored rows cannot be read', restore));
  if (readable.length + damaged.length === 0)
    yield fail(
      'there is no tenant',
      'Run gpd tenants add shop --origin https://shop.example, with your name and origin.',
    );
  const database = await context.data();
  const remedy = 'Run gpd tenants policy KID --set FILE with a valid file.';
  yield* ofTenants(context, fail('a policy of weights cannot be read', remedy), ({ kid }) =>
    readPolicies(database, kid).then(
      () => false,
      () => true,
    ),
  );
  yield pass(listSome(readable.map(({ kid }) => kid)));
}

const isPlain = (origin: string): boolean =>
  origin.startsWith('http:') && !isLoopback(new URL(origin).hostname);

const mayAttest = (origin: string, rpId: string): boolean => {
  const party = relyingPartyOf(origin, rpId);
  return party !== null && (rpId === '' || party === rpId || new URL(origin).hostname === rpId);
};

async function* checkOrigins(context: DoctorContext): Findings {
  const remedy = 'Run gpd tenants set KID origins=https://….';
  const noOrigin = warn('no origin, so no browser may read an answer', remedy);
  yield* ofTenants(context, noOrigin, ({ settings }) => settings.origins.length === 0);
  const plain = warn('an origin is plain http, where no agent runs', remedy);
  yield* ofTenants(context, plain, ({ settings }) => settings.origins.some(isPlain));
  const unattested = warn(
    'visitors cannot use passkeys on an origin that is an IP address, or not below attest.rpId',
    'Serve the pages under a domain, and name it or a parent of it: gpd tenants set KID attest.rpId=example.com.',
  );
  yield* ofTenants(context, unattested, ({ settings }) =>
    settings.origins.some((origin) => !mayAttest(origin, settings['attest.rpId'])),
  );
}

async function* checkPublished(context: DoctorContext): Findings {
  const rotate = 'Run gpd keys rotate KID.';
  const notOne = fail('not exactly one published seal key', rotate);
  yield* ofTenants(context, notOne, ({ sealKeys }) => {
    return sealKeys.filter(({ state }) => state === 'published').length !== 1;
  });
  const replaced = fail(
    'a public seal key is not that of its private key',
    'Somebody wrote to the database. Run gpd keys rotate KID, and read docs/operate/key-compromise.md.',
  );
  const master = (await context.keys())?.master;
  yield* ofTenants(context, replaced, ({ sealKeys }) => {
    const foreign = sealKeys.filter((key) => master && !isOwnPublicKey(master, key));
    return foreign.map(({ generation }) => generation).join(', ');
  });
  const database = await context.data();
  const shared = 'a shared key: each of its clients can decrypt bundles';
  yield* ofTenants(context, warn(shared, 'Move the clients to the published key.'), async ({ kid }) => {
    return (await readTenantSecret(database, kid, SYMMETRIC_SECRET)) !== null;
  });
}

async function* checkAge(context: DoctorContext): Findings {
  const { now } = context;
  const rotate = 'Run gpd keys rotate KID.';
  yield* ofTenants(context, warn('a seal key older than a year', rotate), ({ sealKeys }) =>
    sealKeys.some((key) => key.state === 'published' && now - (key.publishedAt ?? now) > 365 * DAY),
  );
  yield* ofTenants(context, warn('a generation was staged over a month ago', rotate), ({ sealKeys }) =>
    sealKeys.some(({ state, createdAt }) => state === 'staged' && now - createdAt > 30 * DAY),
  );
  const destroy = 'Start gpd serve, or run gpd keys destroy KID GENERATION.';
  const before = (await context.jobTime()) - 10 * MINUTE;
  yield* ofTenants(context, fail('a private key is kept past its grace period', destroy), ({ sealKeys }) =>
    sealKeys.some(({ state, retiresAt }) => state === 'retiring' && (retiresAt ?? 0) < before),
  );
}

const IDLE_MS = 180 * DAY;

async function* checkApiKeys(context: DoctorContext): Findings {
  const create = 'Run gpd apikeys create KID --scope secret --name NAME.';
  const noKey = warn('no API key, so no backend can ask for a verdict', create);
  yield* ofTenants(context, noKey, ({ apiKeys }) => apiKeys.every(({ revokedAt }) => revokedAt !== null));
  const revoke = 'Run gpd apikeys list, then gpd apikeys revoke ID for each key that you no longer need.';
  yield* ofTenants(context, warn('API keys unused for half a year', revoke), ({ apiKeys }) =>
    apiKeys.some(({ revokedAt, createdAt, lastUsedOn }) => {
      const usedAt = lastUsedOn === null ? createdAt : Date.parse(lastUsedOn);
      return revokedAt === null && context.now - usedAt > IDLE_MS;
    }),
  );
}

async function* checkPurpose(context: DoctorContext): Findings {
  const define = 'Run gpd consent purposes set KID device-identification --title TITLE.';
  yield* ofTenants(
    context,
    fail('the purpose device-identification is not defined', define),
    ({ purposes }) => !purposes.some(({ id }) => id === 'device-identification'),
  );
  const publish = 'Run gpd consent policies KID --publish FILE.';
  yield* ofTenants(
    context,
    warn('proven consent is required, and no policy is published', publish),
    ({ settings, policies }) => settings['consent.basis'] === 'ledger' && policies.length === 0,
  );
}

async function* checkNotice(context: DoctorContext): Findings {
  const fill = 'Run gpd tenants set KID notice.controller=… notice.contact=… notice.authority=….';
  const noController = fail('people are not told who is responsible', fill);
  yield* ofTenants(context, noController, ({ settings }) =>
    [settings['notice.controller'], settings['notice.contact']].includes(''),
  );
  const noAuthority = warn('people are not told where they can complain', fill);
  yield* ofTenants(context, noAuthority, ({ settings }) => settings['notice.authority'] === '');
}

async function* checkLanguages(context: DoctorContext): Findings {
  const untranslated = warn(
    'people whose language the banner speaks read a purpose in another one',
    'Translate title and description in banner.texts: gpd tenants set KID banner.texts=JSON, see docs/banner.md.',
  );
  yield* ofTenants(context, untranslated, ({ purposes, settings }) =>
    purposes
      .map((purpose) => ({
        id: purpose.id,
        missing: untranslatedLanguages(purpose, settings['banner.texts']),
      }))
      .filter(({ missing }) => missing.length > 0)
      .map(({ id, missing }) => `${id} (${listSome(missing)})`)
      .join('; '),
  );
}

const VISITS_MS = 30 * DAY;

async function* checkGpc(context: DoctorContext): Findings {
  const database = await context.data();
  const refused = warn(
    'Global Privacy Control refuses more than a fifth of the visits of the last 30 days',
    'Run gpd consent purposes set KID device-identification --title TITLE --gpc ask, so that people can still agree: docs/banner.md.',
  );
  yield* ofTenants(context, refused, async ({ kid, purposes }) => {
    const { gpc, all } = await readVisits(database, kid, context.now - VISITS_MS);
    const purpose = purposes.find(({ id }) => id === 'device-identification');
    return purpose?.gpc === 'opt-out' && gpc * 5 > all;
  });
}

async function* checkWorker(context: DoctorContext): Findings {
  const database = await context.data();
  const withoutWorker = warn(
    'most bundles of the last 30 days came without the worker file, so its rules never fire',
    'Serve agent-worker.js from the page’s own origin, and name it in workerUrl: docs/integrate.md.',
  );
  yield* ofTenants(context, withoutWorker, async ({ kid }) => {
    const { workerless, judged } = await readVisits(database, kid, context.now - VISITS_MS);
    return workerless * 2 > judged;
  });
}

async function* checkState(context: DoctorContext): Findings {
  const [database, macs] = [await context.data(), await context.macs()];
  const forged = fail(
    'rows of consent_state, consent_principals, purposes or consent_policies were written without the key',
    'Restore the last good backup; until then the server answers 503 for these rows.',
  );
  yield* ofTenants(context, forged, async ({ kid }) => {
    const terms = macs.get(kid);
    // A tenant whose key does not open is reported by master-key.fits.
    if (!terms) return false;
    const termsMatch = await database.snapshot((read) => areTermsAuthentic(read, terms));
    return !termsMatch || (await countInvalid(database, terms)) > 0;
  });
}

const VERIFY = 'Run gpd consent verify KID; docs/verify-a-proof.md says what to do next.';

/** @returns why gpd would not sign the next checkpoint, or '' */
async function checkpointProblem({ keys, data }: DoctorContext, kid: string, head: LogHead): Promise<string> {
  const [unlocked, database] = [await keys(), await data()];
  if (!unlocked) return '';
  const wrapped = await readTenantSecret(database, kid, LEDGER_SECRET);
  if (wrapped === null) return 'the key of the log is missing';
  try {
    const seed = unlocked.master.unwrap(wrapped, tenantSecretContext(kid, LEDGER_SECRET));
    const signer = createNoteSigner(head.origin, seed);
    const signed = await readSigned({ database, book: unlocked.book }, kid, signer);
    return signed && !signed.inDatabase ? 'there is no checkpoint' : '';
  } catch (error) {
    if (error instanceof NotSigned) return error.detail;
    throw error;
  }
}

/** @returns the first fault of the entries that no checkpoint covers yet, or '' */
async function newEntryProblem(
  context: DoctorContext,
  kid: string,
  { vkey, size }: LogHead,
): Promise<string> {
  const [unlocked, terms] = [await context.keys(), (await context.macs()).get(kid)];
  if (!unlocked || !terms) return '';
  const last = await unlocked.book.last(vkey).catch(() => null);
  const range = { from: last?.size ?? 0, to: size, macs: terms.stateMac, now: await context.jobTime() };
  const [problem] = await checkNewEntries(await context.data(), kid, range);
  return problem ? `${problem.code}: ${problem.what}` : '';
}

/** Checks the end of each log; `gpd consent verify` recomputes the whole log. */
async function* checkLog(context: DoctorContext): Findings {
  const database = await context.data();
  const headMismatch = fail('the log does not match its head', VERIFY);
  yield* ofTenants(context, headMismatch, async ({ kid }) => {
    const { head, last, entries, headHash } = await readLog(database, kid);
    // A tenant that was removed since has no log.
    if (!head) return Boolean(await createTenantStore(database).get(kid));
    const isLast = last?.seq === head.size - 1 && headHash === last.hash && entries === head.size;
    return !isLast || leafHash(Buffer.from(last.entry)).toString('hex') !== last.hash;
  });
  const foreign = fail('entries that gpd did not write so', VERIFY);
  yield* ofTenants(context, foreign, async ({ kid }) => {
    const { head } = await readLog(database, kid);
    return head ? newEntryProblem(context, kid, head) : '';
  });
  yield* ofTenants(context, fail('nothing is signed for these logs', VERIFY), async ({ kid }) => {
    const { head } = await readLog(database, kid);
    return head ? checkpointProblem(context, kid, head) : '';
  });
}

async function* checkWitnesses({ config, data }: DoctorContext): Findings {
  if (config.witnesses.length === 0) throw new Skipped('GPD_WITNESSES is not set');
  const failed = (await readJobFailures(await data())).filter(({ job }) => job === COSIGN_JOB);
  const names = failed.map(({ kid, reason }) => `${kid}: ${reason.replace('NotCosigned ', '')}`);
  const kids = [...new Set(failed.map(({ kid }) => kid ?? ''))];
  const isFork = names.some((name) => name.includes(': fork '));
  const createFinding = isFork ? fail : warn;
  const remedy = isFork
    ? 'Run gpd consent verify KID, and compare with what the witness keeps: docs/witnesses.md.'
    : 'Check that the witness answers at its URL and knows the log: docs/witnesses.md.';
  yield* about(names, createFinding('checkpoints that are not cosigned', perTenant(remedy, kids)));
}

async function* checkOrigin(context: DoctorContext): Findings {
  const [database, url] = [await context.data(), new URL(baseUrl(context.config))];
  const isEarly = (origin: string): boolean =>
    isLoopback(new URL(`http://${origin}`).hostname) && !isLoopback(url.hostname);
  const originOf = async (kid: string) => (await readLog(database, kid)).head?.origin;
  const early = fail(
    'the log was made before base_url was set, and its name could be any machine’s',
    'Before you go live, run gpd init in an empty data directory with base_url set. A live log keeps its name.',
  );
  yield* ofTenants(context, early, async ({ kid }) => {
    const origin = await originOf(kid);
    return origin !== undefined && isEarly(origin);
  });
  const elsewhere = warn(
    'the log is named after another host than the base URL',
    'Keep the old name reachable: a log’s origin never changes.',
  );
  yield* ofTenants(context, elsewhere, async ({ kid }) => {
    const origin = await originOf(kid);
    return origin !== undefined && !isEarly(origin) && origin !== `${url.host}/ledger/${kid}`;
  });
}

export const TENANT_CHECKS: readonly Check[] = [
  { id: 'tenants.readable', title: 'every tenant can be read', run: checkReadable },
  { id: 'tenants.origins', title: 'every origin is https and can have passkeys', run: checkOrigins },
  { id: 'keys.published', title: 'every tenant has one published seal key', run: checkPublished },
  { id: 'keys.age', title: 'no seal key is older than it should be', run: checkAge },
  { id: 'apikeys.use', title: 'every tenant has an API key, and each is in use', run: checkApiKeys },
  { id: 'terms.purpose', title: 'every tenant has published its terms', run: checkPurpose },
  { id: 'terms.notice', title: 'every notice is filled in', run: checkNotice },
  { id: 'terms.languages', title: 'every purpose has its words in each language', run: checkLanguages },
  { id: 'terms.gpc', title: 'Global Privacy Control refuses few visits', run: checkGpc },
  { id: 'agent.worker', title: 'most bundles bring what the worker file sees', run: checkWorker },
  { id: 'consent.state', title: 'every row that a check reads carries its MAC', run: checkState },
  { id: 'log.entries', title: 'every log fits its head and what was signed', run: checkLog },
  { id: 'log.witnesses', title: 'every witness has cosigned', run: checkWitnesses },
  { id: 'log.origin', title: 'every log is named after the base URL', run: checkOrigin },
];
