import type { Claims } from './jwt.ts';
/** Why a sign-in came to nothing; the page has a sentence for each. */
export type LoginFault = 'cancelled' | 'not-yours' | 'provider-refused' | 'token';

export class LoginRefused extends Error {
  readonly fault: LoginFault;

  constructor(fault: LoginFault) {
    super(`sign-in refused: ${fault}`);
    this.name = 'LoginRefused';
    this.fault = fault;
  }
}

/** What a sign-in has to remember until the person comes back from the identity provider. */
export interface LoginBegun {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** OIDC authorization code flow with PKCE (RFC 6749 section 4.1, RFC 7636, RFC 9700). */
export interface LoginProvider {
  /**
   * The URL to send the browser to.
   * @param switching the person wants to be somebody else: the provider must not answer for the person already signed in there
   * @throws {Unavailable} when the provider cannot be read
   */
  begin(switching: Switching | null): Promise<LoginBegun & { readonly url: string }>;
  /**
   * The verified claims of who came back.
   * @throws {LoginRefused} the answer is not one to this sign-in, or the person or the provider said no
   * @throws {Unavailable} when the provider cannot be reached
   */
  finish(callback: URL, begun: LoginBegun): Promise<VerifiedLogin>;
  /**
   * Where the browser ends its session at the provider, too (RP-Initiated Logout 1.0); null: the provider has no such
   * address, or cannot be read now.
   */
  endSession(idToken: string | null): Promise<string | null>;
}

/** Values of `prompt` (OIDC core section 3.1.2.1). Every provider knows `login`; not every one `select_account`. */
export type Switching = 'select_account' | 'login';

export interface VerifiedLogin {
  readonly idToken: string;
  /** Of the ID token, whose signature, issuer, audience, expiry and nonce were checked. */
  readonly claims: Claims;
  /** The same and what the userinfo endpoint adds; asked for when the ID token says too little. */
  more(): Promise<Claims>;
}
