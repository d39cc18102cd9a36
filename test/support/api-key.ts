import { KID } from './constants.ts';
import type { Gpd } from './server.ts';

/** Creates a consent API key on the command line. A running server accepts it after its next poll. */
export async function addApiKey(gpd: Pick<Gpd, 'json'>, scope = 'secret', kid = KID): Promise<string> {
  const command = ['apikeys', 'create', kid, '--scope', scope, '--name', 't'];
  return (await gpd.json<{ key: string }>(command)).key;
}
