import { collectSignals } from './collect/collect.ts';
import { collectInput } from './collect/input.ts';
import { browserGpc, isRefused, passConsentGate } from './consent-gate.ts';
import { makePlaintext } from './plaintext.ts';
import { type ServerFacts, serverFactsOf } from './pubkey.ts';
import { isUnavailable, unavailable } from './request.ts';
import { sealBundle } from './seal.ts';
import { send } from './send.ts';
import type {
  CollectedSignals,
  ConsentReceipt,
  Identified,
  IdentifyOptions,
  IdentifyResult,
  Unavailable,
  UpdateOptions,
} from './types.ts';
import { endpointOf, passkeyUrlOf, workerUrlOf } from './urls.ts';

const TIMEOUT_MS = 10_000;

/** What the page says was granted; a consent function that fails has granted nothing. */
async function receiptOf(consent: IdentifyOptions['consent']): Promise<ConsentReceipt | null> {
  try {
    return await (typeof consent === 'function' ? consent() : consent);
  } catch {
    return null;
  }
}

interface Sealing {
  readonly kid: string;
  readonly endpoint: string;
  readonly consent: ConsentReceipt;
  readonly signals: CollectedSignals;
  readonly signal: AbortSignal;
  readonly after?: string | undefined;
}

/** What an update seals again, with the input since. */
interface LastVerdict {
  readonly requestId: string;
  readonly options: IdentifyOptions;
  readonly signals: CollectedSignals;
}

let lastVerdict: LastVerdict | null = null;

/** Every attempt has a new nonce and time: the server accepts a nonce once. */
async function attempt(sealing: Sealing, { key, aheadMs }: ServerFacts): Promise<Identified | Unavailable> {
  const { endpoint, consent, signals, signal, after } = sealing;
  const bundle = await sealBundle(key, makePlaintext(consent, signals, aheadMs, after));
  const result = await send(endpoint, bundle, signal);
  return result.sent && aheadMs !== 0 ? { ...result, clockAheadMs: aheadMs } : result;
}

/** `decrypt-failed` is what a rotation looks like from here, `stale` a wrong clock: one more try, by the facts of now. */
async function attemptTwice(sealing: Sealing, known: ServerFacts): Promise<Identified | Unavailable> {
  const first = await attempt(sealing, known);
  const reason = first.sent ? first.response.reason : null;
  if (reason !== 'decrypt-failed' && reason !== 'stale') return first;
  const now = await serverFactsOf(sealing.endpoint, sealing.kid, sealing.signal, true);
  if (isUnavailable(now)) return now;
  // By the same time it would be as stale again.
  return reason === 'stale' && now.aheadMs === known.aheadMs ? first : attempt(sealing, now);
}

async function run(
  options: IdentifyOptions,
  consent: ConsentReceipt,
  scriptUrl: string | null,
  { signal, before }: { readonly signal: AbortSignal; readonly before?: LastVerdict },
): Promise<Identified | Unavailable> {
  const { kid } = options;
  const endpoint = endpointOf(options.endpoint, scriptUrl);
  const facts = serverFactsOf(endpoint, kid, signal, false);
  const signals: CollectedSignals = before
    ? { ...before.signals, input: collectInput() }
    : await collectSignals(workerUrlOf(options.workerUrl, scriptUrl));
  const known = await facts;
  if (isUnavailable(known)) return known;
  const after = before?.requestId;
  const result = await attemptTwice({ kid, endpoint, consent, signals, signal, after }, known);
  if (!result.sent || result.response.reason !== 'ok') return result;
  lastVerdict = { requestId: result.response.requestId, options, signals };
  return signals['worker'] === null ? { ...result, incomplete: 'worker' } : result;
}

const ATTESTATION = 'device-attestation';
/** The token of a verdict lives five minutes. */
const FRESH_MS = 240_000;

/** The last verdict that needs attestation, for the click that follows it. */
let waiting: { readonly about: string; readonly at: number; readonly result: Identified } | null = null;

async function askPasskey(
  result: Identified,
  request: { readonly endpoint: string; readonly kid: string; readonly token: string },
  scriptUrl: string | null,
): Promise<Identified> {
  try {
    const { attest } = (await import(
      passkeyUrlOf(request.endpoint, scriptUrl)
    )) as typeof import('./passkey.ts');
    return { ...result, ...(await attest(request)) };
  } catch {
    return { ...result, passkey: 'failed' };
  }
}

/** By the verdict that waits, or by a new one. Never a prompt without a click. */
async function identifyAttested(
  scriptUrl: string | null,
  options: IdentifyOptions,
  consent: ConsentReceipt,
): Promise<IdentifyResult> {
  const { kid } = options;
  const pressed = navigator.userActivation?.isActive !== false;
  const endpoint = endpointOf(options.endpoint, scriptUrl);
  const about = `${endpoint} ${kid}`;
  const isFresh = waiting?.about === about && Date.now() - waiting.at < FRESH_MS;
  // The person may have agreed to it since: then it takes a bundle that says so.
  const agreed = waiting?.result.response.consentState.purposes.includes(ATTESTATION);
  const known = isFresh && agreed ? (waiting?.result ?? null) : null;
  const result = known ?? (await identifyOnce(scriptUrl, options, consent));
  if (!result.sent || !result.response.needsAttestation) return result;
  const token = result.response.transparencyToken;
  if (!consent.purposes.includes(ATTESTATION)) return { ...result, passkey: 'not-consented' };
  if (!pressed) return { ...result, passkey: 'not-pressed' };
  if (token === undefined) return { ...result, passkey: 'failed' };
  const asked = await askPasskey(result, { endpoint, kid, token }, scriptUrl);
  if (asked.passkey !== 'declined') waiting = null;
  return asked;
}

async function identifyOnce(
  scriptUrl: string | null,
  options: IdentifyOptions,
  consent: ConsentReceipt,
  before?: LastVerdict,
): Promise<Identified | Unavailable> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), options.timeoutMs ?? TIMEOUT_MS);
  try {
    const result = await run(options, consent, scriptUrl, {
      signal: abort.signal,
      ...(before && { before }),
    });
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
 * The gate, then key and signals side by side, then seal and send.
 * @param scriptUrl where the agent itself was loaded from, if known
 * @returns always a value: a refusal and a broken network are answers, not exceptions
 */
export async function identifyFrom(
  scriptUrl: string | null,
  options: IdentifyOptions,
): Promise<IdentifyResult> {
  const consent = passConsentGate(await receiptOf(options.consent), browserGpc());
  if (isRefused(consent)) return consent;
  if (!globalThis.crypto?.subtle) return unavailable('insecure-context');
  const identify = options.attest === 'passkey' ? identifyAttested : identifyOnce;
  return identify(scriptUrl, options, consent);
}

/**
 * Seals the signals of the last verdict again, with the input since then: a login or a checkout is judged by more than the
 * moment of load. The consent is read again.
 */
export async function updateFrom(
  scriptUrl: string | null,
  given: UpdateOptions = {},
): Promise<IdentifyResult> {
  const before = lastVerdict;
  if (!before) return unavailable('nothing-to-update');
  const options = { ...before.options, ...given };
  const consent = passConsentGate(await receiptOf(options.consent), browserGpc());
  return isRefused(consent) ? consent : identifyOnce(scriptUrl, options, consent, before);
}
