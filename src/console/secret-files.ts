import { type Config, ConfigError, readSecretFile } from '../config.ts';

/**
 * The server reads it before it starts, so that a wrong path stops the start instead of failing a sign-in.
 * @throws {ConfigError}
 */
export function readClientSecret(config: Config): string | null {
  const file = config.console_client_secret_file;
  if (file === null) return null;
  try {
    return readSecretFile(file).toString('utf8').trim();
  } catch {
    throw new ConfigError(`GPD_CONSOLE_CLIENT_SECRET_FILE: cannot read ${file}`);
  }
}
