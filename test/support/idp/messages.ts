import type { JWK } from 'jose';

/** Between a test and the process of its identity provider. */

/**
 * What the provider does to every request instead of an answer: `hang` says nothing, `drip` never ends, `redirect` leads
 * to `target`, `body` answers 200 and `target`, `huge` ten megabytes of JSON.
 */
export interface FaultRule {
  readonly fault: 'hang' | 'drip' | 'redirect' | 'body' | 'huge' | 'error';
  readonly target?: string;
  /** One address alone; all by default. */
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
  /** Claims stand in the ID token itself; otherwise at userinfo, as OIDC core section 5.4 has it. */
  readonly claimsInIdToken: boolean;
  /** It has an address where clients sign people out. */
  readonly signsOut: boolean;
  /** Private JWKs; the provider signs with the first of an algorithm. */
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

/** Request headers of the token endpoint by which a test says what the token shall hold. */
export const CLAIMS_HEADER = 'x-test-claims';
export const ALG_HEADER = 'x-test-alg';
