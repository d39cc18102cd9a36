import { z } from 'zod';
import { isOneLine, parseUrl } from '../lib/text.ts';
import { directoryUrl } from './directory.ts';

/**
 * Reads the card of an agent (draft-meunier-webbotauth-registry-04): OAuth client metadata with one object
 * `web_bot_auth`. It is shown to staff; nobody signed it, so no verdict depends on it (ADR 0108).
 */

export interface AgentCard {
  /** Its `client_id`. An operator names it: neither a signature nor a key set does. */
  readonly url: string;
  /** Null: it was never read. */
  readonly says: CardClaims | null;
  /** The reason why the last fetch failed; the card before it stays. */
  readonly failure: string | null;
}

export type CardClaims = Omit<z.output<typeof cardSchema>, 'client_id' | 'jwks' | 'jwks_uri'>;

const line = z.string().trim().min(1).max(200).refine(isOneLine);
const page = line.refine((text) => parseUrl(text)?.protocol === 'https:');
const contact = z.union([page, line.refine((text) => /^(?:mailto|tel):/i.test(text))]);
/** The draft wants parameters with an unknown value to be ignored. */
const known = <T>(schema: z.ZodType<T>) => schema.nullable().catch(null).default(null);

const cardSchema = z
  .object({
    client_id: z.unknown().optional(),
    jwks: z.unknown().optional(),
    jwks_uri: z.unknown().optional(),
    client_name: known(line),
    client_uri: known(page),
    contacts: z.array(z.unknown()).catch([]).default([]),
    web_bot_auth: z
      .object({ trigger: known(z.enum(['fetcher', 'crawler'])), purpose: known(line) })
      .catch({ trigger: null, purpose: null })
      .default({ trigger: null, purpose: null }),
  })
  .transform(({ client_name: name, client_uri, contacts, web_bot_auth, ...ids }) => ({
    ...ids,
    name,
    page: client_uri,
    contacts: contacts.flatMap((one) => contact.safeParse(one).data ?? []).slice(0, 5),
    ...web_bot_auth,
  }));

/** The URL of a card as the draft compares it: character by character. Null: it is never fetched. */
export function cardUrl(text: string): string | null {
  const url = text.length > 512 ? null : parseUrl(text);
  const isPlain = url?.protocol === 'https:' && url.username === '' && url.password === '' && url.hash === '';
  return isPlain ? text : null;
}

/** @throws {Error} why this is not the card of the key set at `directory` */
export function readCard(document: unknown, url: string, directory: string): CardClaims {
  const parsed = cardSchema.safeParse(document);
  if (!parsed.success) throw new Error('it is no card');
  const { client_id, jwks, jwks_uri, ...says } = parsed.data;
  if (client_id !== url) throw new Error('its client_id is another URL');
  if (jwks !== undefined && jwks_uri !== undefined) throw new Error('it has both jwks and jwks_uri');
  if (typeof jwks_uri !== 'string' || directoryUrl(jwks_uri) !== directory)
    throw new Error('its jwks_uri is not the URL of this key set');
  return says;
}
