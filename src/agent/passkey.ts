import { fromBase64, toBase64Url, toJson } from '../browser/encoding.ts';
import type { IngestResponse } from './types.ts';

/**
 * The browser's part of a passkey, in a separate file that is loaded when a page wants a passkey (contract-2
 * section 16).
 */

/** `token` is the transparency token of the visit that needs attestation. */
export type PasskeyRequest = Readonly<Record<'endpoint' | 'kid' | 'token', string>>;

/** Without a response the person declined, or the ceremony failed. */
export type PasskeyAnswer =
  | { readonly passkey: 'attested'; readonly status: number; readonly response: IngestResponse }
  | { readonly passkey: 'declined' | 'failed' };

interface Offer {
  readonly ceremony: 'create' | 'get';
  readonly publicKey: Record<string, unknown> & {
    readonly challenge: string;
    readonly user?: { id: string };
  };
}

const fromBase64Url = (text: string) => fromBase64(text.replace(/-/g, '+').replace(/_/g, '/'));

async function post<T>(url: string, body: object): Promise<T | number> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    credentials: 'include',
    cache: 'no-store',
    redirect: 'error',
    body: toJson(body),
  });
  return response.ok ? ((await response.json()) as T) : response.status;
}

/**
 * Remembers that this browser has created a passkey. Without storage it creates another one the next time.
 */
function rememberPasskey(kid: string, exists?: boolean): boolean {
  const name = `gpd-passkey ${kid}`;
  try {
    if (exists === true) localStorage.setItem(name, '1');
    if (exists === false) localStorage.removeItem(name);
    return localStorage.getItem(name) !== null;
  } catch {
    return false;
  }
}

/**
 * The console's sign-in calls it too.
 * @returns WebAuthn's RegistrationResponseJSON or AuthenticationResponseJSON
 */
export async function ask({ ceremony, publicKey }: Offer) {
  const { challenge, user } = publicKey;
  const options = {
    ...publicKey,
    challenge: fromBase64Url(challenge),
    ...(user && { user: { ...user, id: fromBase64Url(user.id) } }),
  } as unknown;
  const { credentials } = navigator;
  const credential = (await (ceremony === 'create'
    ? credentials.create({ publicKey: options as PublicKeyCredentialCreationOptions })
    : credentials.get({ publicKey: options as PublicKeyCredentialRequestOptions }))) as PublicKeyCredential;
  const buffers = credential.response as unknown as Record<string, ArrayBuffer>;
  const parts =
    ceremony === 'create'
      ? ['clientDataJSON', 'attestationObject']
      : ['clientDataJSON', 'authenticatorData', 'signature'];
  const response = Object.fromEntries(
    parts.map((part) => [part, toBase64Url(new Uint8Array(buffers[part] as ArrayBuffer))]),
  );
  return { id: credential.id, rawId: credential.id, type: credential.type, response };
}

/** Asks the person. Never throws: a person who declines keeps the verdict unchanged. */
export async function attest({ endpoint, kid, token }: PasskeyRequest): Promise<PasskeyAnswer> {
  const base = `${endpoint}/_fp/attest/v1/`;
  try {
    const ceremony = rememberPasskey(kid) ? 'get' : 'create';
    const offer = await post<Offer>(`${base}options`, { token, ceremony });
    if (typeof offer === 'number') return { passkey: 'failed' };
    const credential = await ask(offer);
    const response = await post<IngestResponse>(`${base}verify`, { token, credential });
    const isDone = typeof response !== 'number';
    // The server may have deleted the passkey: then the next ceremony creates one.
    rememberPasskey(kid, isDone);
    return isDone ? { passkey: 'attested', status: 200, response } : { passkey: 'failed' };
  } catch (error) {
    const isDeclined = (error as Error).name === 'NotAllowedError';
    if (isDeclined) rememberPasskey(kid, false);
    return { passkey: isDeclined ? 'declined' : 'failed' };
  }
}
