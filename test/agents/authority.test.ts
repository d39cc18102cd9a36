import { describe, expect, it } from 'vitest';
import { publicNames, verifyBotAuth } from '../../src/agents/verify.ts';
import { type Config, loadConfig } from '../../src/config.ts';
import { NOW } from '../support/make.ts';
import { AGENT_ORIGIN, createAgent, createDeps, createRequest, signedHeaders } from './support/agent.ts';

/** `@authority` is one of our configured public names, or the signature was made for somebody else. */

const AGENT = createAgent();

function config(settings: Readonly<Record<string, string>>): Config {
  return loadConfig({ environment: settings });
}

interface Asked {
  readonly settings?: Readonly<Record<string, string>>;
  readonly signedFor: string;
  /** The Host header as it arrived; by default the one that was signed. */
  readonly host?: string;
  readonly https?: boolean;
}

function ask({ settings = {}, signedFor, host = signedFor, https = true }: Asked): Promise<string | null> {
  const names = publicNames(
    config({ GPD_BASE_URL: 'https://gpd.example', ...settings }),
    'https://gpd.example',
  );
  const deps = createDeps([AGENT], { policy: { authorities: () => names, maxValiditySeconds: 86_400 } });
  const scheme = https ? 'https' : 'http';
  const headers = { ...signedHeaders(AGENT, { host: signedFor, scheme }), host };
  return verifyBotAuth(deps, createRequest(headers, { https }), NOW);
}

describe('our public names', () => {
  it.each([
    ['the host of the base URL', { signedFor: 'gpd.example' }],
    ['in any case', { signedFor: 'gpd.example', host: 'GPD.Example' }],
    ['with the default port of https', { signedFor: 'gpd.example', host: 'gpd.example:443' }],
    ['with the default port of http', { signedFor: 'gpd.example', host: 'gpd.example:80', https: false }],
    ['a further name', { settings: { GPD_AUTHORITIES: 'id.shop.example' }, signedFor: 'id.shop.example' }],
    [
      'the second further name',
      { settings: { GPD_AUTHORITIES: 'a.example b.example' }, signedFor: 'b.example' },
    ],
    [
      'a further name in capitals',
      { settings: { GPD_AUTHORITIES: 'ID.Shop.Example' }, signedFor: 'id.shop.example' },
    ],
    [
      'a further name with a port of its own',
      { settings: { GPD_AUTHORITIES: 'id.shop.example:8443' }, signedFor: 'id.shop.example:8443' },
    ],
    [
      'a further name written with the default port',
      { settings: { GPD_AUTHORITIES: 'id.shop.example:443' }, signedFor: 'id.shop.example' },
    ],
  ])('%s', async (_name, headerLines) => {
    expect(await ask(headerLines)).toBe(AGENT_ORIGIN);
  });
});

describe('the names of others', () => {
  it.each([
    ['another host', { signedFor: 'evil.example' }],
    ['a subdomain', { signedFor: 'a.gpd.example' }],
    ['a parent', { signedFor: 'example' }],
    ['another port', { signedFor: 'gpd.example:8443' }],
    ['the port of the other scheme', { signedFor: 'gpd.example:80' }],
    ['the name with a dot behind it', { signedFor: 'gpd.example.' }],
    [
      'a signature for another host, replayed with our Host',
      { signedFor: 'evil.example', host: 'gpd.example' },
    ],
    [
      'a signature for us, behind a proxy that rewrites Host',
      { signedFor: 'gpd.example', host: 'internal:8080' },
    ],
    ['no host', { signedFor: 'gpd.example', host: '' }],
    ['two hosts', { signedFor: 'gpd.example', host: 'gpd.example, evil.example' }],
    ['user information before the host', { signedFor: 'gpd.example', host: 'x@gpd.example' }],
    ['a path behind the host', { signedFor: 'gpd.example', host: 'gpd.example/x' }],
  ])('%s', async (_name, headerLines) => {
    expect(await ask(headerLines)).toBeNull();
  });

  it('X-Forwarded-Host is no name of ours', async () => {
    const headers = { ...signedHeaders(AGENT, { host: 'gpd.example' }), host: 'internal:8080' };
    const forwarded = { ...headers, 'x-forwarded-host': 'gpd.example', forwarded: 'host=gpd.example' };
    const deps = createDeps([AGENT]);
    expect(await verifyBotAuth(deps, createRequest(forwarded), NOW)).toBeNull();
  });
});

describe('without a base URL', () => {
  it('the server is called by the names of this machine, with its port', () => {
    const names = publicNames(config({}), 'http://127.0.0.1:8080');
    expect(new Set(names)).toEqual(new Set(['127.0.0.1:8080', 'localhost:8080', '[::1]:8080']));
  });
});
