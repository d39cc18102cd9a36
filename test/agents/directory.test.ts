import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  agentIdentity,
  directoryUrl,
  importAgentKey,
  MAX_KEYS,
  readJwks,
  WELL_KNOWN_PATH,
} from '../../src/agents/directory.ts';
import { createAgent, rfcTestAgent, thumbprintOf } from './support/agent.ts';

const { jwk, thumbprint } = createAgent();

describe('the address of a directory', () => {
  it.each([
    ['https://agent.example', `https://agent.example${WELL_KNOWN_PATH}`],
    ['HTTPS://Agent.Example:443', `https://agent.example${WELL_KNOWN_PATH}`],
    ['https://agent.example:8443', `https://agent.example:8443${WELL_KNOWN_PATH}`],
    ['https://agent.example/keys.json', 'https://agent.example/keys.json'],
    ['https://agent.example/?', `https://agent.example${WELL_KNOWN_PATH}`],
    ['https://agent.example/keys?a=1#b', 'https://agent.example/keys'],
    ['https://bücher.example', `https://xn--bcher-kva.example${WELL_KNOWN_PATH}`],
  ])('%s', (text, url) => {
    expect(directoryUrl(text)).toBe(url);
    expect(directoryUrl(url)).toBe(url);
  });

  it.each([
    'http://agent.example',
    'file:///etc/passwd',
    'agent.example',
    'https://',
    'https://user@agent.example',
    `https://agent.example/${'a'.repeat(500)}`,
  ])('%s is never looked up', (text) => {
    expect(directoryUrl(text)).toBeNull();
  });

  it('names the agent by the URL of its keys, or by its origin where they are at its well-known address', () => {
    expect(agentIdentity(directoryUrl('https://agent.example')!)).toBe('https://agent.example');
    expect(agentIdentity(directoryUrl('https://agent.example:8443/?a')!)).toBe('https://agent.example:8443');
    expect(agentIdentity(directoryUrl('https://agent.example/a/b?c#d')!)).toBe('https://agent.example/a/b');
  });
});

const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });

/** @returns another spelling of the same 32 bytes: they leave two bits of the last character unused */
const otherSpelling = (x: string): string => {
  const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return x.slice(0, 42) + (last[last.indexOf(x[42] ?? '') + 1] ?? '');
};

describe('the keys of a directory', () => {
  it('are known by the thumbprint that is computed here', async () => {
    expect(await readJwks({ keys: [jwk] })).toEqual([{ thumbprint, x: jwk.x }]);
    expect(thumbprint).toBe(thumbprintOf(jwk));
  });

  it('never include the key that the RFC prints, in whichever spelling', async () => {
    const printed = rfcTestAgent();
    const spelled = otherSpelling(printed.jwk.x);
    expect(Buffer.from(spelled, 'base64url')).toEqual(Buffer.from(printed.jwk.x, 'base64url'));
    expect(await readJwks({ keys: [{ ...printed.jwk, x: spelled, kid: 'mine' }] })).toEqual([]);
  });

  it("carry their times of validity, and not the directory's own kid", async () => {
    const kid = createAgent().thumbprint;
    const keys = await readJwks({
      purpose: 'ai',
      keys: [{ ...jwk, kid, 'x5t#S256': kid, nbf: 5, exp: 9.5, use: 'sig', alg: 'EdDSA' }],
    });
    expect(keys).toEqual([{ thumbprint, x: jwk.x, nbf: 5, exp: 9.5 }]);
  });

  it('may be one bare JWK and no set', async () => {
    expect(await readJwks({ ...jwk, kid: 'mine', nbf: 5 })).toEqual([{ thumbprint, x: jwk.x, nbf: 5 }]);
    expect(await readJwks(p256)).toEqual([]);
    expect(await readJwks(rfcTestAgent().jwk)).toEqual([]);
  });

  it.each<readonly [string, unknown]>([
    ['beside a set', { ...jwk, keys: [createAgent().jwk] }],
    ['beside a set that is none', { ...jwk, keys: {} }],
    ['without kty', { crv: 'Ed25519', x: jwk.x }],
  ])('a bare JWK %s is not read', async (_name, document) => {
    expect((await readJwks(document))?.map((key) => key.thumbprint) ?? []).not.toContain(thumbprint);
  });

  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' });
  const x25519 = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' });
  it.each<readonly [string, unknown]>([
    ['a P-256 key', p256],
    ['an RSA key', rsa],
    ['an X25519 key', x25519],
    ['an x that is too short', { ...jwk, x: jwk.x.slice(1) }],
    ['an x that is too long', { ...jwk, x: `${jwk.x}A` }],
    ['an x whose last bits say nothing', { ...jwk, x: otherSpelling(jwk.x) }],
    ['a key with its private half', { ...jwk, d: jwk.x }],
    ['an x in base64', { ...jwk, x: `${jwk.x.slice(0, 42)}+` }],
    ['no x', { kty: 'OKP', crv: 'Ed25519' }],
    ['kty in lower case', { ...jwk, kty: 'okp' }],
    ['an nbf that is a string', { ...jwk, nbf: '0' }],
    ['an exp beyond all numbers', { ...jwk, exp: Number.POSITIVE_INFINITY }],
    ['null', null],
    ['a list', [jwk]],
  ])('%s is passed over', async (_name, other) => {
    expect(await readJwks({ keys: [other, jwk, other] })).toEqual([{ thumbprint, x: jwk.x }]);
  });

  it.each<readonly [string, unknown]>([
    ['keys that are no list', { keys: { 0: jwk } }],
    ['null', null],
    ['too many keys', { keys: Array.from({ length: MAX_KEYS + 1 }, () => jwk) }],
    ['too many keys of another kind', { keys: Array.from({ length: MAX_KEYS + 1 }, () => p256) }],
  ])('%s is no directory', async (_name, document) => {
    expect(await readJwks(document)).toBeNull();
  });

  it('may be as many as the limit, or none', async () => {
    const keys = Array.from({ length: MAX_KEYS }, () => createAgent().jwk);
    expect(await readJwks({ keys: keys })).toHaveLength(MAX_KEYS);
    expect(await readJwks({ keys: [] })).toEqual([]);
  });

  it('can be imported whatever 32 bytes they are: none may keep a server from starting', () => {
    const points = ['A'.repeat(43), '_'.repeat(43), `${'A'.repeat(42)}B`, `AQ${'A'.repeat(41)}`];
    for (const x of points) expect(importAgentKey({ thumbprint: '', x }).asymmetricKeyType).toBe('ed25519');
  });
});
