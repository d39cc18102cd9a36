import { createHash, randomBytes } from 'node:crypto';
import type { Idp } from './oidc.ts';

/** A person signs in at the provider's own pages (authorization code, PKCE), as a browser would. */

export interface LoginClient {
  readonly id: string;
  readonly secret: string;
  readonly redirectUri: string;
}

export interface Tokens {
  readonly access_token: string;
  readonly id_token: string;
}

/** Follows redirects with cookies until an address that does not begin with the provider's. */
async function browse(idp: Idp, account: string, start: string, redirectUri: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = start;
  let form: URLSearchParams | null = null;
  for (let step = 0; step < 20; step += 1) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const response: Response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie },
      ...(form ? { method: 'POST', body: form } : {}),
    });
    for (const line of response.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';', 1)[0]?.split(/=(.*)/s) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    const html = await response.text();
    form = null;
    if (location !== null) url = new URL(location, url).href;
    else {
      const prompt = /name="prompt" value="(\w+)"/.exec(html)?.[1];
      const action = /<form[^>]* action="([^"]+)"/.exec(html)?.[1];
      if (prompt === undefined || action === undefined)
        throw new Error(`the provider answered ${response.status}: ${html.slice(0, 500)}`);
      url = new URL(action, url).href;
      form = new URLSearchParams({ prompt, login: account, password: 'any' });
    }
    if (url.startsWith(redirectUri)) return new URL(url);
  }
  throw new Error(`no end after many steps, now at ${url} of ${idp.issuer}`);
}

export async function loginAs(idp: Idp, client: LoginClient, account: string): Promise<Tokens> {
  const verifier = randomBytes(32).toString('base64url');
  const asked = new URLSearchParams({
    client_id: client.id,
    redirect_uri: client.redirectUri,
    response_type: 'code',
    scope: 'openid privacy',
    resource: idp.audience,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const back = await browse(idp, account, `${idp.issuer}/auth?${asked}`, client.redirectUri);
  const code = back.searchParams.get('code');
  if (code === null) throw new Error(`no code: ${back.search}`);
  const response = await fetch(`${idp.issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: client.redirectUri,
      code_verifier: verifier,
      resource: idp.audience,
    }),
  });
  const tokens = (await response.json()) as Tokens;
  if (!tokens.access_token) throw new Error(`no token: ${JSON.stringify(tokens)}`);
  return tokens;
}
