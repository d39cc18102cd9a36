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
