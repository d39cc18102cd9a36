import { collectSignals } from './collect/collect.ts';
import { browserGpc, isRefused, passGate } from './gate.ts';
import { makePlaintext } from './plaintext.ts';
import { publicKeyOf } from './pubkey.ts';
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
} from './types.ts';
import { endpointOf, workerUrlOf } from './urls.ts';

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
}

/** Every attempt has a nonce and a time of its own: the server claims a nonce once. */
async function attempt(sealing: Sealing, freshKey: boolean): Promise<Identified | Unavailable> {
  const { kid, endpoint, consent, signals, signal } = sealing;
  const key = await publicKeyOf(endpoint, kid, signal, freshKey);
  if (isUnavailable(key)) return key;
  return send(endpoint, await sealBundle(key, makePlaintext(consent, signals)), signal);
}

/** `decrypt-failed` is what a rotation looks like from here: one more try, with the key of now. */
async function attemptTwice(sealing: Sealing): Promise<Identified | Unavailable> {
  const first = await attempt(sealing, false);
  const rotated = first.sent && first.status === 400 && first.response.reason === 'decrypt-failed';
  return rotated ? attempt(sealing, true) : first;
}

async function run(
  options: IdentifyOptions,
  consent: ConsentReceipt,
  scriptUrl: string | null,
  signal: AbortSignal,
): Promise<Identified | Unavailable> {
  const { kid } = options;
  const endpoint = endpointOf(options.endpoint, scriptUrl);
  const key = publicKeyOf(endpoint, kid, signal, false);
  const signals = await collectSignals(workerUrlOf(options.workerUrl, scriptUrl));
  const early = await key;
  if (isUnavailable(early)) return early;
  return attemptTwice({ kid, endpoint, consent, signals, signal });
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
  const consent = passGate(browserGpc() ? null : await receiptOf(options.consent), browserGpc());
  if (isRefused(consent)) return consent;
  if (!globalThis.crypto?.subtle) return unavailable('insecure-context');
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), options.timeoutMs ?? TIMEOUT_MS);
  try {
    return await run(options, consent, scriptUrl, abort.signal);
  } catch {
    return unavailable(abort.signal.aborted ? 'timeout' : 'internal');
  } finally {
    clearTimeout(timer);
  }
}
