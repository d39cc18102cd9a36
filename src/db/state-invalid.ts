import { channel } from 'node:diagnostics_channel';
import { Unavailable } from '../lib/errors.ts';

/** Told the tenant of each row whose MAC was wrong: the log and the metrics listen. */
export const STATE_INVALID = 'gpd.consent-state-invalid';
const invalid = channel(STATE_INVALID);
export const tellInvalid = (kid: string): void => invalid.publish(kid);

/** Somebody wrote to a row without its key, and nothing is answered from it. */
export class ConsentStateInvalid extends Unavailable {
  readonly code = 'consent-state-invalid';

  constructor(kid: string) {
    super('a row that consent is decided from does not carry its MAC');
    tellInvalid(kid);
  }
}
