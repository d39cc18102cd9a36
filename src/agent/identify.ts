import { browserGpc, untilSeen } from '../browser/page.ts';
import { collectSignals, renewSignals } from './collect/collect.ts';
import { observeInput } from './collect/input.ts';
import { isRefused, passConsentGate } from './consent-gate.ts';
import type { PasskeyAnswer, PasskeyRequest } from './passkey.ts';
import { makePlaintext, sealBundle } from './seal.ts';
import {
  endpointOf,
  isUnavailable,
  loadServerFacts,
  passkeyUrlOf,
  type ServerFacts,
  send,
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
 * One visit: collects signals, seals them, sends them and returns the verdict. The entries of the agent
 * export its names.
 */

const TIMEOUT_MS = 10_000;

/** Reads the grant from the page. A consent function that fails has granted nothing. */
async function readReceipt(consent: IdentifyOptions['consent']): Promise<ConsentReceipt | null> {
  try {
    return await (typeof consent === 'function' ? consent() : consent);
  } catch {
    return null;
  }
}

/** The last verdict with its signals: an update seals them again with newer input. */
interface LastVerdict {
  readonly requestId: string;
  readonly options: IdentifyOptions;
  readonly signals: CollectedSignals;
}

/** One call of the page that has passed the consent gate. */
interface Visit {
  readonly scriptUrl: string | null;
  readonly options: IdentifyOptions;
  readonly consent: ConsentReceipt;
  readonly previous?: LastVerdict;
}

let lastVerdict: LastVerdict | null = null;

type Attempt = (facts: ServerFacts) => Promise<Identified | Unavailable>;

/**
 * After a rotation the server answers `decrypt-failed`, after a wrong clock `stale`: the visit is sent once
 * more with new facts.
 */
async function attemptTwice(
  attempt: Attempt,
  serverFacts: ServerFacts,
  loadFacts: () => ReturnType<typeof loadServerFacts>,
): Promise<Identified | Unavailable> {
  const first = await attempt(serverFacts);
  const reason = first.sent ? first.response.reason : null;
  if (reason !== 'decrypt-failed' && reason !== 'stale') return first;
  const newFacts = await loadFacts();
  if (isUnavailable(newFacts)) return newFacts;
  // With the same clock offset the second bundle would be stale as well.
  return reason === 'stale' && newFacts.aheadMs === serverFacts.aheadMs ? first : attempt(newFacts);
}

async function runVisit(visit: Visit, signal: AbortSignal): Promise<Identified | Unavailable> {
  const { scriptUrl, options, consent, previous } = visit;
  const endpoint = endpointOf(options.endpoint, scriptUrl);
  const loadFacts = (reload: boolean) => loadServerFacts(endpoint, options.kid, signal, reload);
  const facts = loadFacts(false);
  const signals: CollectedSignals = previous
    ? renewSignals(previous.signals)
    : await collectSignals(workerUrlOf(options.workerUrl, scriptUrl));
  // Each attempt gets a new nonce and time, because the server accepts a nonce once.
  const attempt: Attempt = async ({ key, aheadMs }) => {
    const bundle = await sealBundle(
      key,
      makePlaintext(consent, signals, aheadMs, previous?.requestId, options.context),
    );
    const result = await send(endpoint, bundle, signal);
    return result.sent && aheadMs !== 0 ? { ...result, clockAheadMs: aheadMs } : result;
  };
  const serverFacts = await facts;
  if (isUnavailable(serverFacts)) return serverFacts;
  const result = await attemptTwice(attempt, serverFacts, () => loadFacts(true));
  if (!result.sent || result.response.reason !== 'ok') return result;
  lastVerdict = { requestId: result.response.requestId, options, signals };
  return signals['worker'] === null ? { ...result, incomplete: 'worker' } : result;
}

const ATTESTATION = 'device-attestation';
/** The token of a verdict is valid for five minutes. */
const FRESH_MS = 240_000;

/** The last verdict that needs attestation, for the click that follows. */
let awaitingPasskey: { readonly target: string; readonly at: number; readonly result: Identified } | null =
  null;

/** A verdict for one order is not attested for another. */
const targetOf = ({ scriptUrl, options: { endpoint, kid, context } }: Visit): string =>
  `${endpointOf(endpoint, scriptUrl)} ${kid} ${context}`;

async function askPasskey(scriptUrl: string | null, request: PasskeyRequest): Promise<PasskeyAnswer> {
  try {
    const url = passkeyUrlOf(request.endpoint, scriptUrl);
    const { attest } = (await import(url)) as typeof import('./passkey.ts');
    return await attest(request);
  } catch {
    return { passkey: 'failed' };
  }
}

/** Attests the last verdict that needs it, or a new one. It never prompts without a click. */
async function identifyAttested(visit: Visit): Promise<IdentifyResult> {
  const { scriptUrl, options, consent } = visit;
  const { kid } = options;
  const wasPressed = navigator.userActivation?.isActive !== false;
  const endpoint = endpointOf(options.endpoint, scriptUrl);
  const target = targetOf(visit);
  const recent =
    awaitingPasskey?.target === target && Date.now() - awaitingPasskey.at < FRESH_MS
      ? awaitingPasskey.result
      : null;
  // The person may have agreed to attestation since that verdict: then a new bundle has to say so.
  const hasAgreed = recent?.response.consentState.purposes.includes(ATTESTATION);
  const result = recent && hasAgreed ? recent : await identifyOnce(visit);
  if (!result.sent || !result.response.needsAttestation) return result;
  const token = result.response.transparencyToken;
  if (!consent.purposes.includes(ATTESTATION)) return { ...result, passkey: 'not-consented' };
  if (!wasPressed) return { ...result, passkey: 'not-pressed' };
  if (token === undefined) return { ...result, passkey: 'failed' };
  const answer = await askPasskey(scriptUrl, { endpoint, kid, token });
  if (answer.passkey !== 'declined') awaitingPasskey = null;
  return { ...result, ...answer };
}

async function identifyOnce(visit: Visit): Promise<Identified | Unavailable> {
  const { options } = visit;
  // The server would refuse the whole bundle.
  if (!/^[\w.:-]{1,64}$/.test(options.context ?? '-')) return unavailable('context');
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), options.timeoutMs ?? TIMEOUT_MS);
  try {
    const result = await runVisit(visit, abort.signal);
    awaitingPasskey =
      result.sent && result.response.needsAttestation
        ? { target: targetOf(visit), at: Date.now(), result }
        : null;
    return result;
  } catch {
    return unavailable(abort.signal.aborted ? 'timeout' : 'internal');
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Waits until the page is seen and asks the consent gate; then loads the key while signals are collected,
 * seals and sends.
 * @param scriptUrl the address that the agent was loaded from, if known
 * @returns a value in every case: refusals and network failures are not exceptions
 */
export async function identifyFrom(
  scriptUrl: string | null,
  options: IdentifyOptions,
): Promise<IdentifyResult> {
  if (typeof document === 'undefined') return unavailable('no-browser');
  await untilSeen();
  const consent = passConsentGate(await readReceipt(options.consent), browserGpc());
  if (isRefused(consent)) return consent;
  if (!globalThis.crypto?.subtle) return unavailable('insecure-context');
  const identify = options.attest === 'passkey' ? identifyAttested : identifyOnce;
  return identify({ scriptUrl, options, consent }).catch(() => unavailable('internal'));
}

/**
 * Seals the signals of the last verdict again with the input since then, so that a login or a checkout is
 * judged by more than the page load. The consent is read again.
 */
export async function updateFrom(
  scriptUrl: string | null,
  changes: UpdateOptions = {},
): Promise<IdentifyResult> {
  const previous = lastVerdict;
  if (!previous) return unavailable('nothing-to-update');
  const options = { ...previous.options, ...changes };
  const consent = passConsentGate(await readReceipt(options.consent), browserGpc());
  return isRefused(consent) ? consent : identifyOnce({ scriptUrl, options, consent, previous });
}

/** The signals without sending them. @returns null when the gate refuses */
export const collectFrom = async (
  scriptUrl: string | null,
  consent: ConsentReceipt | null,
  workerUrl?: string | null,
) =>
  isRefused(passConsentGate(consent, browserGpc()))
    ? null
    : collectSignals(workerUrlOf(workerUrl, scriptUrl));

/** The agent's API for a page; agent.d.ts documents it. */
export type Surface = ReturnType<typeof createSurface>;

/**
 * @param scriptUrl the address that the agent was loaded from: it gives the default server and the worker
 * file
 */
export function createSurface(scriptUrl: string | null) {
  return Object.freeze({
    identify: (options: IdentifyOptions) => identifyFrom(scriptUrl, options),
    update: (options?: UpdateOptions) => updateFrom(scriptUrl, options),
    collect: (consent: ConsentReceipt | null, workerUrl?: string | null) =>
      collectFrom(scriptUrl, consent, workerUrl),
    observeInput,
    makePlaintext,
    sealBundle,
  });
}
