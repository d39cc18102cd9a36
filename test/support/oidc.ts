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

/** Starts a real identity provider (oidc-provider) in a separate process. The test knows its private keys. */

export const AUDIENCE = 'https://gpd.test/privacy';
const MAIN = fileURLToPath(new URL('./idp/main.ts', import.meta.url));
const CLIENT = { id: 'harness', secret: randomBytes(24).toString('base64url') };

export type Alg = 'ES256' | 'RS256';

export interface IdpOptions {
  /** A fixed port, for a provider that is started after the server that needs it. */
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
  /** The GPD_OIDC_* settings of a server that trusts this provider. */
  readonly settings: Readonly<Record<string, string>>;
  /** The private JWKs that the provider currently signs with. */
  readonly keys: { readonly ES256: JWK; readonly RS256: JWK };
  /** Requests a token from the token endpoint; the claims are added to the provider's, or replace them. */
  token(claims: Readonly<Record<string, unknown>>, options?: { readonly alg?: Alg }): Promise<string>;
  /** Builds a token by hand, signed with a current key; undefined members of the header are left out. */
  forge(claims: Part, header?: Readonly<Record<string, unknown>>, alg?: Alg): string;
  /** Returns the claims of an acceptable token: iss, aud, sub, iat, exp and a role. */
  claims(more?: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** Replaces the keys; the old ones are no longer published unless `keepOld` is set. */
  rotate(options?: { readonly keepOld?: boolean }): Promise<void>;
  fault(rule: FaultRule | null): Promise<void>;
  /** Returns the paths of all requests since the last call. */
  asked(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

/** The bundle is built once per run, because compiling TypeScript takes longer than starting the provider. */
async function buildProgram(): Promise<string> {
  const program = join(runDir, 'idp.mjs');
  if (existsSync(program)) return program;
  const provider = import.meta.resolve('oidc-provider');
  const bundle = await build({
    entryPoints: [MAIN],
    bundle: true,
    platform: 'node',
    format: 'esm',
    // Packages cannot be found by name from the temporary directory, so this one gets its path.
    alias: { 'oidc-provider': provider },
    external: [provider],
    write: false,
  });
  const draft = join(tempDir('idp'), 'idp.mjs');
  writeFileSync(draft, bundle.outputFiles[0]?.contents ?? '');
  // The rename is atomic, because other workers may build it at the same time.
  renameSync(draft, program);
  return program;
}

async function createKeys(generation: number): Promise<Idp['keys']> {
  const [ES256, RS256] = await Promise.all([createKey('ES256'), createKey('RS256')]);
  return { ES256: { ...ES256, kid: `ec-${generation}` }, RS256: { ...RS256, kid: `rsa-${generation}` } };
}

interface Process {
  readonly child: ChildProcess;
  /**
   * One entry per generation. Creating RSA keys is slow,
   * so the next provider in this process uses them again.
   */
  readonly keys: Idp['keys'][];
  stderr: string;
}

/** Processes whose provider was stopped. They are used again, because starting one is slow. */
const idleProcesses: Process[] = [];

/** The process exits when its channel to this one closes. */
async function startProcess(): Promise<Process> {
  const child = spawn(process.execPath, [await buildProgram()], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const started: Process = { child, keys: [], stderr: '' };
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    started.stderr += text;
  });
  return started;
}

/** An idle process must not keep the test process running, so its handles are unreferenced. */
function setReference({ child }: Process, method: 'ref' | 'unref'): void {
  for (const handle of [child, child.channel, child.stderr as Socket | null]) handle?.[method]();
}

function clientsOf({ clients = [] }: IdpOptions): IdpClient[] {
  const harness = {
    client_id: CLIENT.id,
    client_secret: CLIENT.secret,
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  };
  const consoleClients = clients.map(({ id, secret, redirectUri }) => ({
    client_id: id,
    client_secret: secret,
    grant_types: ['authorization_code'],
    redirect_uris: [redirectUri],
    post_logout_redirect_uris: [redirectUri.replace('/callback', '/signed-out')],
    response_types: ['code'],
  }));
  return [harness, ...consoleClients];
}

function sendMessage<Done extends FromIdp['done']>(
  child: ChildProcess,
  message: ToIdp & { readonly do: Done },
): Promise<FromIdp & { readonly done: Done }> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void =>
      reject(new Error(`the identity provider ended with ${code}`));
    child.once('exit', onExit);
    child.once('message', (answer: FromIdp) => {
      child.off('exit', onExit);
      resolve(answer as FromIdp & { readonly done: Done });
    });
    child.send(message);
  });
}

export async function startIdp(options: IdpOptions = {}): Promise<Idp> {
  const idpProcess = idleProcesses.pop() ?? (await startProcess());
  setReference(idpProcess, 'ref');
  const { child, keys: createdKeys } = idpProcess;
  const keysOf = async (index: number): Promise<Idp['keys']> => {
    createdKeys[index] ??= await createKeys(index + 1);
    return createdKeys[index];
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
  const { port } = await sendMessage(child, { do: 'start', setup }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${idpProcess.stderr}`);
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
        throw new Error(`no token: ${JSON.stringify(answer)}\n${idpProcess.stderr}`);
      return answer.access_token;
    },
    forge: (claims, header = {}, alg = 'ES256') =>
      signJws({ alg, typ: 'at+jwt', kid: keys[alg].kid, ...header }, claims, keys[alg]),
    claims(changes = {}) {
      const now = Math.floor(Date.now() / 1000);
      const registered = { iss: issuer, aud: AUDIENCE, sub: 'user-1', iat: now, exp: now + 300 };
      return { ...registered, gpd_role: 'subject', ...changes };
    },
    async rotate({ keepOld = false } = {}) {
      generation += 1;
      const old = keepOld ? [keys.ES256, keys.RS256] : [];
      keys = await keysOf(generation);
      await sendMessage(child, { do: 'rotate', jwks: [keys.ES256, keys.RS256, ...old] });
    },
    async fault(rule) {
      await sendMessage(child, { do: 'fault', rule });
    },
    async asked() {
      return (await sendMessage(child, { do: 'asked' })).asked;
    },
    async stop() {
      if (isStopped) return;
      isStopped = true;
      await sendMessage(child, { do: 'stop' });
      setReference(idpProcess, 'unref');
      idleProcesses.push(idpProcess);
    },
  };
  return idp;
}
