import { describe, expect, it } from 'vitest';
import { directoryUrl, importAgentKey, RFC_TEST_KEY, readJwks } from '../../src/agents/directory.ts';
import { type BotAuthDeps, verifyBotAuth } from '../../src/agents/verify.ts';
import matrix from '../vectors/wba-matrix.json' with { type: 'json' };

/**
 * The 50 signed requests under a test-only policy: they are signed with the RFC's published test key and valid for
 * decades. Production refuses both, which has tests of its own.
 */

type Case = (typeof matrix.cases)[number];

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
  const keys = (await readJwks({ keys: [testCase.public_jwk] }, new Set())) ?? [];
  const directory = directoryUrl('https://signature-agent.test');
  const deps: BotAuthDeps = {
    policy: { authorities: () => ['example.com', 'example.com:8443'], ...policy },
    findKey: (url, thumbprint) => {
      const key = keys.find((candidate) => candidate.thumbprint === thumbprint);
      return url === directory && key ? importAgentKey(key) : null;
    },
    claimNonce: () => Promise.resolve(true),
  };
  const { pathname, search } =
    /^https:\/\/[^/?]+(?<pathname>[^?]*)(?<search>\?.*)?$/.exec(testCase.url)?.groups ?? {};
  const headers = Object.fromEntries(
    Object.entries(testCase.headers).map(([name, value]) => [name.toLowerCase(), value]),
  ) as Record<string, string | string[]>;
  const target = `${pathname === '' ? '/' : pathname}${search ?? ''}`;
  return verifyBotAuth(
    deps,
    { method: testCase.method, target, headers, https: true, bundle: 'acme|nonce' },
    matrix.generated * 1000,
  );
}

describe('wba-matrix', () => {
  it.each(matrix.cases.map((testCase) => [testCase.name, testCase] as const))(
    '%s',
    async (name, testCase) => {
      const maxValiditySeconds = BY_PRODUCTION_POLICY.has(name) ? DAY_SECONDS : DECADES;
      const verdict = await verify(testCase, { maxValiditySeconds });
      const accepted =
        testCase.expect.startsWith('accept') && name.startsWith('ok-') && !UNSUPPORTED.has(name);
      expect(verdict).toBe(accepted ? 'https://signature-agent.test' : null);
    },
  );

  it('has both kinds of cases', () => {
    expect(matrix.cases).toHaveLength(50);
    expect(matrix.cases.filter((testCase) => testCase.expect === 'reject').length).toBeGreaterThan(20);
  });
});

describe('production policy', () => {
  it('accepts none of the good vectors: they are valid for decades', async () => {
    for (const testCase of matrix.cases.filter(({ name }) => name !== 'ok-expires-now-plus')) {
      expect(await verify(testCase, { maxValiditySeconds: DAY_SECONDS })).toBeNull();
    }
  });

  it("refuses the RFC's test key in a directory", async () => {
    const [testCase] = matrix.cases;
    expect(testCase?.keyid).toBe(RFC_TEST_KEY);
    expect(await readJwks({ keys: [testCase?.public_jwk] })).toEqual([]);
  });
});
