import { browserGpc, untilSeen } from '../browser/page.ts';
import { collectSignals, renewSignals } from './collect/collect.ts';
import { observeInput } from './collect/input.ts';
import { isRefused, passConsentGate } from './consent-gate.ts';
import type { PasskeyAnswer, PasskeyRequest } from './passkey.ts';
import { makePlaintext, sealBundle } from './seal.ts';
import {
  endpointOf,
  isUnavailable,
  passkeyUrlOf,
  type ServerFacts,
  send,
  serverFactsOf,
  unavailable,
  workerUrlOf,
} from './server.ts';
import type {
  CollectedSignals,
  ConsentReceipt,
  Identified,
  IdentifyOptions,
  IdentifyResult,
  Unavailable,
  UpdateOptions,
} from './types.ts';

/**
 * One visit: collects signals, seals them, sends them and answers with the verdict. The three entries of
 * the agent share its names.
 */

const TIMEOUT_MS = 10_000;

/** The grant that the page reports; a consent function that fails has granted nothing. */
async function receiptOf(consent: IdentifyOptions['consent']): Promise<ConsentReceipt | null> {
  try {
    return await (typeof consent === 'function' ? consent() : consent);
  } catch {
    return null;
  }
}

/** The visit that an update seals again, with the input since. */
interface LastVerdict {
  readonly requestId: string;
  readonly options: IdentifyOptions;
  readonly signals: CollectedSignals;
}

/** One call of the page that has passed the gate. */
interface Visit {
  readonly scriptUrl: string | null;
  readonly options: IdentifyOptions;
  readonly consent: ConsentReceipt;
  readonly before?: LastVerdict;
}

let lastVerdict: LastVerdict | null = null;

type Attempt = (facts: ServerFacts) => Promise<Identified | Unavailable>;

/** `decrypt-failed` is what a rotation looks like from here, `stale` a wrong clock: one more try, by the facts of now. */
async function attemptTwice(
  attempt: Attempt,
  serverFacts: ServerFacts,
  factsOfNow: () => ReturnType<typeof serverFactsOf>,
): Promise<Identified | Unavailable> {
  const first = await attempt(serverFacts);
  const reason = first.sent ? first.response.reason : null;
  if (reason !== 'decrypt-failed' && reason !== 'stale') return first;
  const now = await factsOfNow();
  if (isUnavailable(now)) return now;
  // With the same clock offset it would be stale again.
  return reason === 'stale' && now.aheadMs === serverFacts.aheadMs ? first : attempt(now);
}

async function run(visit: Visit, signal: AbortSignal): Promise<Identified | Unavailable> {
  const { scriptUrl, options, consent, before } = visit;
  const endpoint = endpointOf(options.endpoint, scriptUrl);
  const factsOf = (again: boolean) => serverFactsOf(endpoint, options.kid, signal, again);
  const facts = factsOf(false);
  const signals: CollectedSignals = before
    ? renewSignals(before.signals)
    : await collectSignals(workerUrlOf(options.workerUrl, scriptUrl));
  /** Every attempt has a new nonce and time: the server accepts a nonce once. */
  const attempt: Attempt = async ({ key, aheadMs }) => {
    const bundle = await sealBundle(key, makePlaintext(consent, signals, aheadMs, before?.requestId));
    const result = await send(endpoint, bundle, signal);
    return result.sent && aheadMs !== 0 ? { ...result, clockAheadMs: aheadMs } : result;
  };
  const serverFacts = await facts;
  if (isUnavailable(serverFacts)) return serverFacts;
  const result = await attemptTwice(attempt, serverFacts, () => factsOf(true));
  if (!result.sent || result.response.reason !== 'ok') return result;
  lastVerdict = { requestId: result.response.requestId, options, signals };
  return signals['worker'] === null ? { ...result, incomplete: 'worker' } : result;
}

const ATTESTATION = 'device-attestation';
/** The token of a verdict lives five minutes. */
const FRESH_MS = 240_000;

/** The last verdict that needs attestation, for the click that follows it. */
let waiting: { readonly about: string; readonly at: number; readonly result: Identified } | null = null;

async function askPasskey(scriptUrl: string | null, request: PasskeyRequest): Promise<PasskeyAnswer> {
  try {
    const url = passkeyUrlOf(request.endpoint, scriptUrl);
    const { attest } = (await import(url)) as typeof import('./passkey.ts');
    return await attest(request);
  } catch {
    return { passkey: 'failed' };
  }
}

/** Attests a waiting verdict, or a new one. It never prompts without a click. */
async function identifyAttested(visit: Visit): Promise<IdentifyResult> {
  const { scriptUrl, options, consent } = visit;
  const { kid } = options;
  const pressed = navigator.userActivation?.isActive !== false;
  const endpoint = endpointOf(options.endpoint, scriptUrl);
  const about = `${endpoint} ${kid}`;
  const recent = waiting?.about === about && Date.now() - waiting.at < FRESH_MS ? waiting.result : null;
  // The person may have agreed to it since: then it takes a bundle that says so.
  const agreed = recent?.response.consentState.purposes.includes(ATTESTATION);
  const result = recent && agreed ? recent : await identifyOnce(visit);
  if (!result.sent || !result.response.needsAttestation) return result;
  const token = result.response.transparencyToken;
  if (!consent.purposes.includes(ATTESTATION)) return { ...result, passkey: 'not-consented' };
  if (!pressed) return { ...result, passkey: 'not-pressed' };
  if (token === undefined) return { ...result, passkey: 'failed' };
  const answer = await askPasskey(scriptUrl, { endpoint, kid, token });
  if (answer.passkey !== 'declined') waiting = null;
  return { ...result, ...answer };
}

async function identifyOnce(visit: Visit): Promise<Identified | Unavailable> {
  const { scriptUrl, options } = visit;
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), options.timeoutMs ?? TIMEOUT_MS);
  try {
    const result = await run(visit, abort.signal);
    const about = `${endpointOf(options.endpoint, scriptUrl)} ${options.kid}`;
    waiting = result.sent && result.response.needsAttestation ? { about, at: Date.now(), result } : null;
    return result;
  } catch {
    return unavailable(abort.signal.aborted ? 'timeout' : 'internal');
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Once somebody sees the page: the gate, then key and signals side by side, then seal and send.
 * @param scriptUrl where the agent itself was loaded from, if known
 * @returns always a value: a refusal and a broken network are answers, not exceptions
 */
export async function identifyFrom(
  scriptUrl: string | null,
  options: IdentifyOptions,
): Promise<IdentifyResult> {
  await untilSeen();
  const consent = passConsentGate(await receiptOf(options.consent), browserGpc());
  if (isRefused(consent)) return consent;
  if (!globalThis.crypto?.subtle) return unavailable('insecure-context');
  const identify = options.attest === 'passkey' ? identifyAttested : identifyOnce;
  return identify({ scriptUrl, options, consent }).catch(() => unavailable('internal'));
}

/**
 * Seals the signals of the last verdict again, with the input since then: a login or a checkout is judged by more than the
 * moment of load. The consent is read again.
 */
async function updateFrom(scriptUrl: string | null, changes: UpdateOptions = {}): Promise<IdentifyResult> {
  const before = lastVerdict;
  if (!before) return unavailable('nothing-to-update');
  const options = { ...before.options, ...changes };
  const consent = passConsentGate(await receiptOf(options.consent), browserGpc());
  return isRefused(consent) ? consent : identifyOnce({ scriptUrl, options, consent, before });
}

/** The API of the agent for a page; agent.d.ts documents it. */
export type Surface = ReturnType<typeof createSurface>;

/** @param scriptUrl where the agent was loaded from: the default server, and where its worker file lies */
export function createSurface(scriptUrl: string | null) {
  return Object.freeze({
    identify: (options: IdentifyOptions) => identifyFrom(scriptUrl, options),
    update: (options?: UpdateOptions) => updateFrom(scriptUrl, options),
    collect: async (consent: ConsentReceipt | null, workerUrl?: string | null) =>
      isRefused(passConsentGate(consent, browserGpc()))
        ? null
        : collectSignals(workerUrlOf(workerUrl, scriptUrl)),
    observeInput,
    makePlaintext,
    sealBundle,
  });
}
