/** What the banner says in one language; {date}, {purposes} and {seq} are filled in. */
export interface Words {
  readonly title: string;
  readonly body: string;
  readonly accept: string;
  readonly reject: string;
  readonly settings: string;
  readonly acceptAll: string;
  readonly rejectAll: string;
  readonly save: string;
  readonly close: string;
  readonly reopen: string;
  readonly policy: string;
  readonly gpc: string;
  readonly gpcWhy: string;
  readonly granted: string;
  readonly denied: string;
  readonly withdrawn: string;
  readonly until: string;
  readonly entry: string;
  readonly whyPolicy: string;
  readonly whyExpired: string;
  readonly whyPurpose: string;
  readonly saved: string;
  readonly later: string;
  readonly failed: string;
}
