import type { JWK } from 'jose';

/** The messages between a test and the process of its identity provider. */

/**
 * The provider answers every request with this fault: `hang` does not answer, `drip` never ends, `redirect`
 * leads to `target`, `body` answers 200 with `target`, and `huge` answers ten megabytes of JSON.
 */
export interface FaultRule {
  readonly fault: 'hang' | 'drip' | 'redirect' | 'body' | 'huge' | 'error';
  readonly target?: string;
  /** The fault only concerns this address; by default it concerns all. */
  readonly only?: 'jwks' | 'discovery' | 'userinfo';
}

export interface IdpClient {
  readonly client_id: string;
  readonly client_secret: string;
  readonly grant_types: readonly string[];
  readonly redirect_uris: readonly string[];
  readonly post_logout_redirect_uris?: readonly string[];
  readonly response_types: readonly string[];
}

export interface IdpSetup {
  readonly port: number;
  readonly audience: string;
  readonly clients: readonly IdpClient[];
  /** Claims by account, for the authorization-code flow. */
  readonly accounts: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Claims are in the ID token; otherwise only at userinfo (OIDC core section 5.4). */
  readonly claimsInIdToken: boolean;
  /** The provider has an end-session endpoint. */
  readonly signsOut: boolean;
  /** Private JWKs; the provider signs with the first one for an algorithm. */
  readonly jwks: readonly JWK[];
}

export type ToIdp =
  | { readonly do: 'start'; readonly setup: IdpSetup }
  | { readonly do: 'rotate'; readonly jwks: readonly JWK[] }
  | { readonly do: 'fault'; readonly rule: FaultRule | null }
  | { readonly do: 'asked' | 'stop' };

export type FromIdp =
  | { readonly done: 'start'; readonly port: number }
  | { readonly done: 'rotate' | 'fault' | 'stop' }
  | { readonly done: 'asked'; readonly asked: readonly string[] };

/** With these request headers of the token endpoint a test chooses the content of a token. */
export const CLAIMS_HEADER = 'x-test-claims';
export const ALG_HEADER = 'x-test-alg';
