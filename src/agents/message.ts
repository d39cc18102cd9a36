import type { UntrustedSignatureCandidate } from 'http-message-sig';
import type { HeaderMap } from '../http/request.ts';

/** A request as it is verified, and what a signature on it says of itself. */

export const TAG = 'web-bot-auth';
export const ALGORITHM = 'ed25519';
export const CREATED_SKEW_SECONDS = 30;

export interface BotAuthRequest {
  readonly method: string;
  /** The request target as sent. */
  readonly target: string;
  readonly headers: HeaderMap;
  readonly https: boolean;
  /** Tenant and nonce of the bundle that it carries: one that is sent again is no second use of its signature. */
  readonly bundle: string;
}

/** A request whose Host is one of our public names. */
export interface OwnRequest extends BotAuthRequest {
  readonly authority: string;
}

/** Nothing of it is believed before the policy agrees and the bytes verify. */
export interface Claim extends Pick<UntrustedSignatureCandidate, 'components' | 'parameters'> {
  /** Address of the directory in the part of Signature-Agent that the signature covers. */
  readonly directory: string | null;
}

export function targetUri({ https, authority, target }: OwnRequest): string {
  return `${https ? 'https' : 'http'}://${authority}${target}`;
}

/** What a signature may cover: http-message-sig parses a keyed header again for every component. */
export const MAX_COMPONENTS = 16;
export const MAX_KEYED = 4;
const MAX_COVERED_LENGTH = 2048;

/** The three that carry a signature; together they are bounded before anything is read (verify.ts). */
export const SIGNATURE_FIELDS: readonly string[] = ['signature-input', 'signature', 'signature-agent'];

const FIELD_CONTENT = /^[\t\x20-\x7e]*$/;
/** http-message-sig looks for the end of a value in time that grows with the square of a run of blanks in it. */
const LONG_RUN = /[\t ]{33}/;

/** A header's value as a signature base may contain it, or null: a line break in one could forge another line. */
export function fieldContent(name: string, value: string): string | null {
  const text = value.trim();
  if (text.length > MAX_COVERED_LENGTH && !SIGNATURE_FIELDS.includes(name)) return null;
  return FIELD_CONTENT.test(value) && !LONG_RUN.test(text) ? text : null;
}
