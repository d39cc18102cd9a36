import { Methods } from './methods.ts';
import { type ClientOptions, type Environment, optionsFromEnv, readOptions } from './options.ts';
import { Transport } from './transport.ts';

/** A client of gpd's consent API. Create one per process and share it. */
export class ConsentClient extends Methods {
  /** @throws {ConsentError} config */
  constructor(options: ClientOptions) {
    const settings = readOptions(options);
    super(new Transport(settings), settings);
  }

  /** Reads GPD_CONSENT_URL and GPD_CONSENT_KEY. @throws {ConsentError} config */
  static fromEnv(
    options: Partial<ClientOptions> = {},
    environment: Environment = process.env,
  ): ConsentClient {
    return new ConsentClient({ ...options, ...optionsFromEnv(environment) });
  }
}
