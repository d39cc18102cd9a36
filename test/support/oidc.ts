import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { JWK } from 'jose';
import { runDir, tempDir } from './command.ts';
import {
  ALG_HEADER,
  CLAIMS_HEADER,
  type FaultRule,
  type FromIdp,
  type IdpClient,
  type ToIdp,
} from './idp/messages.ts';
import { createKey, type Part, signJws } from './jws.ts';

/** A real identity provider (oidc-provider) in a process of its own, whose private keys the test knows. */

export const AUDIENCE = 'https://gpd.test/privacy';
const MAIN = fileURLToPath(new URL('./idp/main.ts', import.meta.url));
const CLIENT = { id: 'harness', secret: randomBytes(24).toString('base64url') };

export type Alg = 'ES256' | 'RS256';

export interface IdpOptions {
  /** A fixed port, for a provider that comes up after the server that needs it. */
  readonly port?: number;
  readonly accounts?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Clients of the authorization-code flow, by their redirect address. */
  readonly clients?: readonly {
    readonly id: string;
    readonly secret: string;
    readonly redirectUri: string;
  }[];
  readonly claimsInIdToken?: boolean;
  readonly signsOut?: boolean;
}

export interface Idp {
  readonly issuer: string;
  readonly audience: string;
  /** GPD_OIDC_* for a server that trusts it. */
  readonly settings: Readonly<Record<string, string>>;
  /** The private JWKs that it signs with now. */
  readonly keys: { readonly ES256: JWK; readonly RS256: JWK };
  /** A token from its token endpoint; the claims are added to its own, or replace them. */
  token(claims: Readonly<Record<string, unknown>>, options?: { readonly alg?: Alg }): Promise<string>;
  /** A token made by hand with its current key; a member of the header that is undefined is left out. */
  forge(claims: Part, header?: Readonly<Record<string, unknown>>, alg?: Alg): string;
  /** Claims of a token that would be taken: iss, aud, sub, iat, exp and a role. */
  claims(more?: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** New keys; the old ones are published no more unless `keepOld`. */
  rotate(options?: { readonly keepOld?: boolean }): Promise<void>;
  fault(rule: FaultRule | null): Promise<void>;
  /** Paths that it was asked for since the last call. */
  asked(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

/** Made once a run: to read the TypeScript at each start took longer than the provider itself. */
async function programOf(): Promise<string> {
  const program = join(runDir, 'idp.mjs');
  if (existsSync(program)) return program;
  const provider = import.meta.resolve('oidc-provider');
  const made = await build({
    entryPoints: [MAIN],
    bundle: true,
    platform: 'node',
    format: 'esm',
    // It lies in the temporary directory, from where no package is found by its name.
    alias: { 'oidc-provider': provider },
    external: [provider],
    write: false,
  });
  const draft = join(tempDir('idp'), 'idp.mjs');
  writeFileSync(draft, made.outputFiles[0]?.contents ?? '');
  // Whole or not at all: other workers make it, too.
  renameSync(draft, program);
  return program;
}

async function createKeys(generation: number): Promise<Idp['keys']> {
  const [ES256, RS256] = await Promise.all([createKey('ES256'), createKey('RS256')]);
  return { ES256: { ...ES256, kid: `ec-${generation}` }, RS256: { ...RS256, kid: `rsa-${generation}` } };
}

interface Process {
  readonly child: ChildProcess;
  /** By generation. RSA keys take long to make: the next provider of this process has the same. */
  readonly keys: Idp['keys'][];
  stderr: string;
}

/** Processes whose provider was stopped. To load one takes longer than all that most tests ask of it. */
const idle: Process[] = [];

/** Without the harness it ends by itself: its channel closes. */
async function startProcess(): Promise<Process> {
  const child = spawn(process.execPath, [await programOf()], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const started: Process = { child, keys: [], stderr: '' };
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    started.stderr += text;
  });
  return started;
}

/** Nobody waits for a process that is idle. */
function hold({ child }: Process, how: 'ref' | 'unref'): void {
  for (const handle of [child, child.channel, child.stderr as Socket | null]) handle?.[how]();
}

function clientsOf({ clients = [] }: IdpOptions): IdpClient[] {
  const harness = {
    client_id: CLIENT.id,
    client_secret: CLIENT.secret,
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  };
  const others = clients.map(({ id, secret, redirectUri }) => ({
    client_id: id,
    client_secret: secret,
    grant_types: ['authorization_code'],
    redirect_uris: [redirectUri],
    post_logout_redirect_uris: [redirectUri.replace('/callback', '/signed-out')],
    response_types: ['code'],
  }));
  return [harness, ...others];
}

function tell<Done extends FromIdp['done']>(
  child: ChildProcess,
  message: ToIdp & { readonly do: Done },
): Promise<FromIdp & { readonly done: Done }> {
  return new Promise((resolve, reject) => {
    const gone = (code: number | null): void => reject(new Error(`the identity provider ended with ${code}`));
    child.once('exit', gone);
    child.once('message', (answer: FromIdp) => {
      child.off('exit', gone);
      resolve(answer as FromIdp & { readonly done: Done });
    });
    child.send(message);
  });
}

export async function startIdp(options: IdpOptions = {}): Promise<Idp> {
  const used = idle.pop() ?? (await startProcess());
  hold(used, 'ref');
  const { child, keys: made } = used;
  const keysOf = async (index: number): Promise<Idp['keys']> => {
    made[index] ??= await createKeys(index + 1);
    return made[index];
  };
  let generation = 0;
  let keys = await keysOf(generation);
  let isStopped = false;
  const { accounts = {} } = options;
  const setup = {
    port: options.port ?? 0,
    audience: AUDIENCE,
    clients: clientsOf(options),
    accounts,
    claimsInIdToken: options.claimsInIdToken ?? false,
    signsOut: options.signsOut ?? true,
    jwks: [keys.ES256, keys.RS256],
  };
  const { port } = await tell(child, { do: 'start', setup }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${used.stderr}`);
  });
  const issuer = `http://127.0.0.1:${port}`;

  const idp: Idp = {
    issuer,
    audience: AUDIENCE,
    settings: { GPD_OIDC_ISSUER: issuer, GPD_OIDC_AUDIENCE: AUDIENCE },
    get keys() {
      return keys;
    },
    async token(claims, { alg = 'ES256' } = {}) {
      const response = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString('base64')}`,
          [CLAIMS_HEADER]: Buffer.from(JSON.stringify(claims)).toString('base64url'),
          [ALG_HEADER]: alg,
        },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource: AUDIENCE }),
      });
      const answer = (await response.json()) as { access_token?: string };
      if (answer.access_token === undefined)
        throw new Error(`no token: ${JSON.stringify(answer)}\n${used.stderr}`);
      return answer.access_token;
    },
    forge: (claims, header = {}, alg = 'ES256') =>
      signJws({ alg, typ: 'at+jwt', kid: keys[alg].kid, ...header }, claims, keys[alg]),
    claims(more = {}) {
      const now = Math.floor(Date.now() / 1000);
      const registered = { iss: issuer, aud: AUDIENCE, sub: 'user-1', iat: now, exp: now + 300 };
      return { ...registered, gpd_role: 'subject', ...more };
    },
    async rotate({ keepOld = false } = {}) {
      generation += 1;
      const old = keepOld ? [keys.ES256, keys.RS256] : [];
      keys = await keysOf(generation);
      await tell(child, { do: 'rotate', jwks: [keys.ES256, keys.RS256, ...old] });
    },
    async fault(rule) {
      await tell(child, { do: 'fault', rule });
    },
    async asked() {
      return (await tell(child, { do: 'asked' })).asked;
    },
    async stop() {
      if (isStopped) return;
      isStopped = true;
      await tell(child, { do: 'stop' });
      hold(used, 'unref');
      idle.push(used);
    },
  };
  return idp;
}
