import type { Claims } from './jwt.ts';

/** Why a sign-in came to nothing; the page has a sentence for each. */
export type LoginFault = 'cancelled' | 'not-yours' | 'provider-refused' | 'token' | 'userinfo';

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

/** Values of `prompt` (OIDC core section 3.1.2.1). Every provider knows `login`; not every one `select_account`. */
export type Switching = 'select_account' | 'login';

export interface VerifiedLogin {
  readonly idToken: string;
  /** Of the ID token, whose signature, issuer, audience, times and nonce were checked. */
  readonly claims: Claims;
  /** The same and what the userinfo endpoint adds; asked for when the ID token says too little. */
  more(): Promise<Claims>;
}
