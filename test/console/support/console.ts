import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempDir } from '../../support/command.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { post, sessionOf } from '../../support/expect.ts';
import { ask, postJson, type Reply } from '../../support/http.ts';
import { type Idp, type IdpOptions, startIdp } from '../../support/oidc.ts';
import { freePort } from '../../support/ports.ts';
import { headlessChrome, type SampleSignals } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import {
  type Gpd,
  type GpdOptions,
  type InProcessOptions,
  startGpd,
  type TenantSpec,
} from '../../support/server.ts';

/** Starts gpd with its console and an identity provider for its staff. */

const OTHER = 'globex';
const TENANTS: readonly TenantSpec[] = [
  { kid: KID, origins: ['https://shop.example'] },
  { kid: OTHER, origins: ['https://other.example'] },
];

const ACCOUNTS: NonNullable<IdpOptions['accounts']> = {
  ada: { gpd_role: ['reviewer'], gpd_tenant: KID, name: 'Ada Lovelace' },
  grace: { gpd_role: ['reviewer'], gpd_tenant: KID, name: 'Grace Hopper' },
  dora: { gpd_role: ['dpo'], gpd_tenant: KID, name: 'Dora Privat' },
  'dpo-2': { gpd_role: ['dpo'], gpd_tenant: KID, name: 'Dirk Privat' },
  olaf: { gpd_role: ['reviewer', 'dpo'], gpd_tenant: OTHER, name: 'Olaf Other' },
  sam: { gpd_role: ['subject'], gpd_tenant: KID, name: 'Sam Subject' },
  blank: { gpd_role: ['reviewer'], gpd_tenant: KID, name: '\u200b\u3164 ', preferred_username: 'blanche' },
  mail: { gpd_role: ['reviewer'], gpd_tenant: KID, name: '', preferred_username: 'petra@shop.example' },
  turned: { gpd_role: ['reviewer'], gpd_tenant: KID, name: 'evil\u202e\r\nabc' },
  una: { gpd_role: ['reviewer'], name: 'Una Unbound' },
  nils: { gpd_role: ['dpo'], gpd_tenant: 'gone', name: 'Nils Nowhere' },
};

export interface Console {
  readonly gpd: Gpd;
  /** The settings of this server, for a second node on the same data. */
  readonly settings: NonNullable<GpdOptions['settings']>;
  readonly idp: Idp;
  readonly url: string;
  /** Records a decision about a device that looks automated. */
  decide(
    device?: string,
    signals?: SampleSignals,
  ): Promise<{ requestId: string; visitorId: string; class: string }>;
  /** Files a contest of such a decision as a person with an account. */
  contest(requestId: string, visitorId: string, statement?: string, sub?: string): Promise<string>;
  /** Files a contest without an account, from the browser that was judged. */
  fileCase(body: object): Promise<{ readonly contestId: string; readonly caseKey: string }>;
  stop(): Promise<void>;
}

export interface ConsoleOptions {
  readonly idp?: IdpOptions;
  readonly gpd?: InProcessOptions;
  readonly secret?: string;
  /** The public origin, if it differs from the server's address. */
  readonly base?: string;
}

/** The settings of a console that is a client of this identity provider. */
export async function startConsole(options: ConsoleOptions = {}): Promise<Console> {
  const port = await freePort();
  const secret = randomBytes(24).toString('base64url');
  const base = options.base ?? `http://127.0.0.1:${port}`;
  const redirectUri = `${base}/console/callback`;
  const clients = [{ id: 'console', secret, redirectUri }];
  const idp = await startIdp({ accounts: ACCOUNTS, clients, ...options.idp });
  const file = join(tempDir('secret'), 'client-secret');
  writeFileSync(file, `${options.secret ?? secret}\n`);
  const settings = {
    ...idp.settings,
    GPD_CONSOLE_CLIENT_ID: 'console',
    GPD_CONSOLE_CLIENT_SECRET_FILE: file,
    GPD_RATE_PRIVACY: 'off',
    GPD_RATE_LOGIN: 'off',
    ...(options.base === undefined ? {} : { GPD_BASE_URL: options.base }),
    ...options.gpd?.settings,
  };
  const gpd = await startGpd({
    tenants: TENANTS,
    args: ['--port', String(port)],
    ...options.gpd,
    settings,
  });
  const [target] = gpd.targets;
  return {
    gpd,
    settings,
    idp,
    url: options.base ?? gpd.url,
    async decide(device = randomBytes(8).toString('hex'), signals = headlessChrome(device)) {
      if (!target) throw new Error('the installation was made elsewhere');
      const reply = await post(options.base ?? gpd.url, createBundle(target, { signals }));
      return reply.json() as { requestId: string; visitorId: string; class: string };
    },
    async contest(requestId, visitorId, statement, sub = 'subject-1') {
      const token = await idp.token({ gpd_role: 'subject', gpd_tenant: KID, gpd_visitor: visitorId, sub });
      const reply = await ask(options.base ?? gpd.url, '/privacy/contest', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ requestId, ...(statement === undefined ? {} : { statement }) }),
      });
      if (reply.status !== 202) throw new Error(`the contest was refused: ${reply.status} ${reply.text}`);
      return (reply.json() as { contestId: string }).contestId;
    },
    async fileCase(body) {
      if (!target) throw new Error('the installation was made elsewhere');
      const reply = await post(gpd.url, createBundle(target, { signals: headlessChrome() }), {
        origin: ORIGIN,
      });
      const { transparencyToken: token } = reply.json() as { transparencyToken: string };
      const headers = { cookie: `gp_session=${sessionOf(reply)}`, origin: ORIGIN };
      const filed = await postJson(gpd.url, '/me', { token, action: 'contest', ...body }, headers);
      if (filed.status !== 202) throw new Error(`the contest was refused: ${filed.status} ${filed.text}`);
      return filed.json() as { contestId: string; caseKey: string };
    },
    async stop() {
      await Promise.all([gpd.stop(), idp.stop()]);
    },
  };
}

/**
 * A browser without scripts. It keeps cookies and sends forms, but does not follow redirects automatically.
 */
export interface Visitor {
  readonly cookies: Map<string, string>;
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  post(
    path: string,
    fields: Readonly<Record<string, string>>,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Reply>;
  /** Posts a form with its CSRF token, which is that of the first sign-in. */
  act(path: string, fields?: Readonly<Record<string, string>>): Promise<Reply>;
  /** Reads the hidden CSRF token in the forms of a page. */
  csrf(path?: string): Promise<string>;
}

/** The Cookie header of the visitor, for requests past it. */
export const cookieOf = ({ cookies }: Visitor): string =>
  [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');

export function createVisitor(base: string): Visitor {
  const jars = new Map<string, Map<string, string>>();
  const jarOf = (url: URL): Map<string, string> => {
    const found = jars.get(url.origin) ?? new Map<string, string>();
    jars.set(url.origin, found);
    return found;
  };
  async function send(address: string, options: Parameters<typeof ask>[2]): Promise<Reply> {
    const url = new URL(address, base);
    const jar = jarOf(url);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(cookie === '' ? {} : { cookie }), ...options?.headers };
    const reply = await ask(url.origin, url.pathname + url.search, { ...options, headers });
    for (const line of reply.headers['set-cookie'] ?? []) {
      const [pair = ''] = line.split(';');
      const at = pair.indexOf('=');
      if (/Max-Age=0/.test(line)) jar.delete(pair.slice(0, at));
      else jar.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return reply;
  }
  let token = '';
  const visitor: Visitor = {
    cookies: jarOf(new URL(base)),
    get: (path, headers = {}) => send(path, { headers }),
    post: (path, fields, headers = {}) =>
      send(path, {
        method: 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          origin: new URL(path, base).origin,
          'sec-fetch-site': 'same-origin',
          ...headers,
        },
        body: new URLSearchParams(fields).toString(),
      }),
    async act(path, fields = {}) {
      token ||= await visitor.csrf();
      return visitor.post(path, { csrf: token, ...fields });
    },
    async csrf(path = '/console/help') {
      const { text } = await visitor.get(path);
      return /name="csrf" value="([\w-]+)"/.exec(text)?.[1] ?? '';
    },
  };
  return visitor;
}

const MAX_HOPS = 20;

/** The hidden fields of a form of the provider. */
function hiddenFields(page: string): Record<string, string> {
  const inputs = page.match(/<input[^>]*type="hidden"[^>]*>/g) ?? [];
  const attribute = (input: string, name: string): string =>
    new RegExp(` ${name}="([^"]*)"`).exec(input)?.[1] ?? '';
  return Object.fromEntries(inputs.map((input) => [attribute(input, 'name'), attribute(input, 'value')]));
}

/** Follows redirects and fills in the forms of the provider until the console answers. */
export async function follow(visitor: Visitor, base: string, start: string, account: string): Promise<Reply> {
  const { origin } = new URL(base);
  let at = new URL(start, base);
  let reply = await visitor.get(at.href);
  for (let hop = 0; hop < MAX_HOPS; hop += 1) {
    const { location } = reply.headers;
    if (location !== undefined) {
      at = new URL(location, at);
      if (at.origin === origin && !/^\/console\/(?:callback|login)$/.test(at.pathname)) break;
      reply = await visitor.get(at.href);
      continue;
    }
    const action = /<form[^>]* action="([^"]+)"/.exec(reply.text)?.[1];
    if (at.origin === origin || action === undefined) break;
    const fields = hiddenFields(reply.text);
    const person = fields['prompt'] === 'login' ? { login: account, password: 'x' } : {};
    reply = await visitor.post(new URL(action, at).href, { ...fields, ...person });
  }
  return reply;
}

export async function signIn(
  base: string,
  account: string,
  back = '/console',
): Promise<Visitor & { readonly last: Reply }> {
  const visitor = createVisitor(base);
  const last = await follow(visitor, base, `/console/login?back=${encodeURIComponent(back)}`, account);
  return { ...visitor, last };
}
