import { KID } from './constants.ts';
import type { Gpd } from './server.ts';

/** Makes a consent API key, as an operator does. A running server accepts it at its next look at the database. */
export async function addApiKey(gpd: Pick<Gpd, 'json'>, scope = 'secret', kid = KID): Promise<string> {
  const command = ['apikeys', 'create', kid, '--scope', scope, '--name', 't'];
  return (await gpd.json<{ key: string }>(command)).key;
}
