import { createPublicKey, verify } from 'node:crypto';
import { type RequestDescriptor, verifySignature } from 'http-message-sig';
import { describe, expect, it } from 'vitest';
import { RFC_TEST_KEY, readJwks } from '../../src/agents/directory.ts';
import { rfcTestAgent } from './support/agent.ts';

/** RFC 9421 section B.2.6 letter by letter: what the pinned library builds, signs and verifies is what the RFC prints. */

const AGENT = rfcTestAgent();
const COMPONENTS = ['date', '@method', '@path', '@authority', 'content-type', 'content-length'];
const CREATED = 1_618_884_473;
const INPUT =
  '("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"';
const SIGNATURE = 'wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==';
const BASE = [
  '"date": Tue, 20 Apr 2021 02:07:55 GMT',
  '"@method": POST',
  '"@path": /foo',
  '"@authority": example.com',
  '"content-type": application/json',
  '"content-length": 18',
  `"@signature-params": ${INPUT}`,
].join('\n');

/** The test-request of section B.2. */
function testRequest(extra: Readonly<Record<string, string>> = {}): RequestDescriptor {
  const target = '/foo?param=Value&Pet=dog';
  const headers = {
    host: 'example.com',
    date: 'Tue, 20 Apr 2021 02:07:55 GMT',
    'content-type': 'application/json',
    'content-digest':
      'sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:',
    'content-length': '18',
    ...extra,
  };
  return {
    kind: 'request',
    method: 'POST',
    targetUri: `https://example.com${target}`,
    requestTarget: target,
    fields: Object.entries(headers).map(([name, value]) => ({ name, value })),
  };
}

const publicKey = createPublicKey({ key: { ...AGENT.jwk }, format: 'jwk' });

async function verifyExample(request: RequestDescriptor): Promise<readonly string[]> {
  const bases: string[] = [];
  const options = {
    policy: {
      algorithms: ['ed25519'],
      requiredComponents: COMPONENTS,
      requiredParameters: ['created', 'keyid'],
      now: CREATED,
    },
    resolveVerifier: () => ({
      algorithm: 'ed25519',
      verify: (data: Uint8Array, signature: Uint8Array) => {
        bases.push(Buffer.from(data).toString());
        return verify(null, data, publicKey, signature);
      },
    }),
  };
  await verifySignature(request, options);
  return bases;
}

describe('RFC 9421 B.2.6', () => {
  const fields = { 'signature-input': `sig-b26=${INPUT}`, signature: `sig-b26=:${SIGNATURE}:` };

  it('the signature of the RFC is one of its signature base by its key', () => {
    expect(verify(null, Buffer.from(BASE), publicKey, Buffer.from(SIGNATURE, 'base64'))).toBe(true);
  });

  it.each([
    ['the date', { date: 'Tue, 20 Apr 2021 02:07:56 GMT' }],
    ['the length', { 'content-length': '19' }],
    ['the media type', { 'content-type': 'application/json ; x=1' }],
    ['the time of signing', { 'signature-input': `sig-b26=${INPUT.replace('4473', '4472')}` }],
    ['the signature', { signature: `sig-b26=:${SIGNATURE.replace('wq', 'wr')}:` }],
  ])('another %s does not verify', async (_name, changed) => {
    await expect(verifyExample(testRequest({ ...fields, ...changed }))).rejects.toMatchObject({
      code: 'VerificationFailed',
    });
  });

  it('its key has the thumbprint that production refuses', async () => {
    expect(AGENT.thumbprint).toBe(RFC_TEST_KEY);
    expect(await readJwks({ keys: [AGENT.jwk] })).toEqual([]);
  });
});
