import { describe, expect, it } from 'vitest';
import { directoryUrl, importAgentKey, RFC_TEST_KEY, readJwks } from '../../src/agents/directory.ts';
import type { BotAuthDeps } from '../../src/agents/verify.ts';
import matrix from '../vectors/wba-matrix.json' with { type: 'json' };
import { verifiedAgent } from './support/agent.ts';

/**
 * The 50 signed requests under a test-only policy: they are signed with the RFC's published test key and valid for
 * decades. Production refuses both, which has tests of its own.
 */

/** A case has what differs from `common`. */
interface Case {
  readonly name: string;
  readonly expect: string;
  readonly url?: string;
  readonly host?: string;
  readonly agent?: string;
  readonly input?: string;
  readonly signature?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

const cases: readonly Case[] = matrix.cases;

const DAY_SECONDS = 86_400;
const DECADES = 4_000_000_000;

/** Refused although the vector would be good: a component that the signature library does not implement. */
const UNSUPPORTED = new Set(['ok-query-param']);

/** A policy of 24 hours is what this case is about; the others are valid for decades. */
const BY_PRODUCTION_POLICY = new Set(['bad-validity-55-years']);

async function verify(
  testCase: Case,
  policy: { readonly maxValiditySeconds: number },
): Promise<string | null> {
  const { method, url, host, agent, input, signature, headers } = { ...matrix.common, ...testCase };
  const keys = (await readJwks({ keys: [matrix.common.public_jwk] }, new Set())) ?? [];
  const directory = directoryUrl('https://signature-agent.test');
  const deps: BotAuthDeps = {
    policy: { authorities: () => ['example.com', 'example.com:8443'], tags: ['web-bot-auth'], ...policy },
    findKey: (address, thumbprint) => {
      const key = keys.find((candidate) => candidate.thumbprint === thumbprint);
      return address === directory && key ? importAgentKey(key) : 'key-unknown';
    },
    claimNonce: () => Promise.resolve(true),
  };
  const { path = '', search = '' } =
    /^https:\/\/[^/?]+(?<path>[^?]*)(?<search>\?.*)?$/.exec(url)?.groups ?? {};
  const fields = {
    host,
    'signature-agent': agent,
    'signature-input': input,
    signature,
    ...Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])),
  };
  const target = `${path || '/'}${search}`;
  const request = { method, target, headers: fields, https: true, bundle: 'acme|nonce' };
  return verifiedAgent(deps, request, matrix.generated * 1000);
}

describe('wba-matrix', () => {
  it.each(cases.map((testCase) => [testCase.name, testCase] as const))('%s', async (name, testCase) => {
    const maxValiditySeconds = BY_PRODUCTION_POLICY.has(name) ? DAY_SECONDS : DECADES;
    const verdict = await verify(testCase, { maxValiditySeconds });
    const accepted = name.startsWith('ok-') && testCase.expect === 'accept' && !UNSUPPORTED.has(name);
    expect(verdict).toBe(accepted ? 'https://signature-agent.test' : null);
  });

  it('has both kinds of cases', () => {
    expect(cases).toHaveLength(50);
    expect(cases.filter((testCase) => testCase.expect === 'reject').length).toBeGreaterThan(20);
  });
});

describe('production policy', () => {
  it('accepts none of the good vectors: they are valid for decades', async () => {
    for (const testCase of cases.filter(({ name }) => name !== 'ok-expires-now-plus')) {
      expect(await verify(testCase, { maxValiditySeconds: DAY_SECONDS })).toBeNull();
    }
  });

  it("refuses the RFC's test key in a directory", async () => {
    const { public_jwk: jwk, keyid } = matrix.common;
    expect(keyid).toBe(RFC_TEST_KEY);
    expect(await readJwks({ keys: [jwk] })).toEqual([]);
  });
});
