import { createPublicKey } from 'node:crypto';
import { createVerifier, httpbis } from 'http-message-signatures';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { announcedSeed, NOW } from '../support/make.ts';
import { fc } from '../support/property.ts';
import {
  AGENT_ORIGIN,
  createAgent,
  createDeps,
  createRequest,
  HOST,
  quoted,
  type SignOptions,
  signedHeaders,
  TARGET,
  verifiedAgent,
} from './support/agent.ts';

/**
 * Another implementation of RFC 9421, npm http-message-signatures, gets the same requests. It knows no Web
 * Bot Auth, so the test compares only what a signature decides: every case is within our policy, or breaks
 * the signature alone.
 */

const seed = Number(announcedSeed('bot-auth differential')) % 2 ** 31;
const AGENT = createAgent();

interface Sent {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
}

async function theirs({ method, target, headers }: Sent): Promise<boolean> {
  const key = createVerifier(createPublicKey({ key: { ...AGENT.jwk }, format: 'jwk' }), 'ed25519');
  try {
    const verified = await httpbis.verifyMessage(
      {
        keyLookup: ({ keyid }) =>
          Promise.resolve(keyid === AGENT.thumbprint ? { id: keyid, algs: ['ed25519'], verify: key } : null),
        tolerance: 30,
        requiredParams: ['created', 'expires', 'keyid', 'tag'],
      },
      { method, url: `https://${HOST}${target}`, headers: { ...headers } },
    );
    return verified === true;
  } catch {
    return false;
  }
}

async function ours({ method, target, headers }: Sent): Promise<boolean> {
  const verdict = await verifiedAgent(createDeps([AGENT]), createRequest(headers, { method, target }), NOW);
  return verdict === AGENT_ORIGIN;
}

const COMPONENTS = ['@method', '@path', '@query', '@scheme', '@target-uri', 'x-run', 'content-type'].map(
  quoted,
);

/** Requests that a careful agent would sign, in many forms. */
const good = fc
  .record({
    method: fc.constantFrom('POST', 'GET', 'PUT'),
    query: fc.constantFrom('', '?', '?a=1&b=2', '?q=%C3%A4%20x', '?a=%2F..%2F'),
    label: fc.constantFrom('sig1', 'a', 'b-2'),
    more: fc.subarray(COMPONENTS),
    run: fc.constantFrom('1', 'a, b', '  padded  ', 'two  blanks', '"quoted"'),
    nonce: fc.option(fc.base64String({ minLength: 4, maxLength: 24 })),
    alg: fc.boolean(),
    legacy: fc.boolean(),
  })
  .map(({ method, query, label, more: moreComponents, run, nonce, alg, legacy }): Sent => {
    const target = `${TARGET}${query}`;
    const agentComponent = legacy ? '"signature-agent"' : `"signature-agent";key="${label}"`;
    const options: SignOptions = {
      label,
      method,
      target,
      components: ['"@authority"', ...moreComponents, agentComponent],
      params: { ...(nonce === null ? {} : { nonce: quoted(nonce) }), ...(alg ? { alg: '"ed25519"' } : {}) },
      headers: { 'x-run': run, 'content-type': 'application/json' },
      ...(legacy ? { signatureAgent: quoted(AGENT_ORIGIN) } : {}),
    };
    return { method, target, headers: signedHeaders(AGENT, options) };
  });

type Change = (sent: Sent) => Sent;
const withHeader =
  (name: string, change: (value: string) => string): Change =>
  (signedRequest) => ({
    ...signedRequest,
    headers: { ...signedRequest.headers, [name]: change(signedRequest.headers[name] ?? '') },
  });

/** Each breaks the signature, or leaves it whole where it does not cover what changed. */
const changes: Readonly<Record<string, Change>> = {
  'another method': (signedRequest) => ({ ...signedRequest, method: 'DELETE' }),
  'another query': (signedRequest) => ({ ...signedRequest, target: `${TARGET}?changed` }),
  'another path': (signedRequest) => ({ ...signedRequest, target: '/other' }),
  'another value of a header': withHeader('x-run', () => 'other'),
  'another media type': withHeader('content-type', (value) => `${value}; x=1`),
  'a flipped bit': withHeader('signature', (value) =>
    value.replace(/:(.)/, (_, c: string) => `:${c === 'A' ? 'B' : 'A'}`),
  ),
  'a shorter signature': withHeader('signature', (value) => value.replace(/:.{8}/, ':')),
  'no signature': withHeader('signature', (value) => value.replace(/:.*:/, '::')),
  'a signature under another label': withHeader('signature', (value) => `z${value}`),
  'a later expiry': withHeader('signature-input', (value) =>
    value.replace(/expires=(\d+)/, (_, n: string) => `expires=${Number(n) + 1}`),
  ),
  'an earlier creation': withHeader('signature-input', (value) =>
    value.replace(/created=(\d+)/, (_, n: string) => `created=${Number(n) - 1}`),
  ),
  'another keyid': withHeader('signature-input', (value) => value.replace(/keyid="./, 'keyid="_')),
  'a component less': withHeader('signature-input', (value) =>
    value.replace(/\("@authority" "[^"]*"(?=[ )])/, '("@authority"'),
  ),
  'another order': withHeader('signature-input', (value) =>
    value.replace(/\(("@authority") (.*)\);created/, '($2 $1);created'),
  ),
  'more blanks between components': withHeader('signature-input', (value) => value.replaceAll('" "', '"  "')),
  'blanks around a header': withHeader('x-run', (value) => ` ${value}\t`),
  'an unrelated header': withHeader('x-unrelated', () => 'anything'),
};

/** Pieces of the grammar of structured fields. */
const PIECES = [
  ...String.raw`sig1|sig2|=|(|)|;|,|"|\|:|?1|0|1.0|1|-|@|*|%|.|/|A|999999999999999|"@authority"|"@method" | "x-run"`.split(
    '|',
  ),
  ...';req|;sf|;bs|;tr|;x=1|;key="sig1"|;key=1|;key|;created=1|;nonce="n"|;tag="web-bot-auth"|;alg="ed25519"'.split(
    '|',
  ),
  ...';keyid="k"|, sig2=()|;type=directory|created|expires|keyid|nonce|:AAAA:|://|%"x"|@1763630000'.split(
    '|',
  ),
  ...['', ' ', '\t', '\n', '\0', '\u00e9', '"signature-agent"', '__proto__', 'constructor'],
];
/** A piece of the grammar put in, or something taken away, where something begins or ends. */
const slip = fc.record({
  at: fc.nat(60),
  cut: fc.constantFrom(0, 0, 0, 1, 2, 12),
  put: fc.constantFrom(...PIECES),
});
function slipped(
  value: string,
  { at, cut, put }: { readonly at: number; readonly cut: number; readonly put: string },
): string {
  const seams = [
    0,
    value.length,
    ...[...value.matchAll(/[^\w+/-]/g)].flatMap(({ index }) => [index, index + 1]),
  ];
  const from = seams[at % seams.length] ?? 0;
  return value.slice(0, from) + put + value.slice(from + cut);
}

const trimmed = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.trim()]));

// http-message-signatures asks the system for the time.
beforeAll(() => void vi.useFakeTimers({ now: NOW, toFake: ['Date'] }));
afterAll(() => void vi.useRealTimers());

describe('against http-message-signatures', () => {
  it('both verify what is signed well', async () => {
    await fc.assert(
      fc.asyncProperty(good, async (signedRequest) => {
        expect(await theirs(signedRequest)).toBe(true);
        expect(await ours(signedRequest)).toBe(true);
      }),
      { seed, numRuns: 100 },
    );
  });

  it('both come to one verdict on what was changed after signing', async () => {
    const verdicts = { whole: 0, broken: 0 };
    await fc.assert(
      fc.asyncProperty(good, fc.constantFrom(...Object.keys(changes)), async (signedRequest, name) => {
        const changed = changes[name]?.(signedRequest) ?? signedRequest;
        const [here, there] = [await ours(changed), await theirs(changed)];
        verdicts[there ? 'whole' : 'broken'] += 1;
        expect({ change: name, verified: here }).toEqual({ change: name, verified: there });
      }),
      { seed, numRuns: 300 },
    );
    expect(Math.min(verdicts.whole, verdicts.broken)).toBeGreaterThan(20);
  });

  it('what we verify after any slip in the three headers, they verify too', async () => {
    const verdicts = { verified: 0, refused: 0 };
    const names = ['signature-input', 'signature', 'signature-agent', 'x-run'] as const;
    await fc.assert(
      fc.asyncProperty(
        good,
        fc.array(fc.tuple(fc.constantFrom(...names), slip), { maxLength: 2 }),
        async (signedRequest, slips) => {
          const headers: Record<string, string> = { ...signedRequest.headers };
          for (const [name, change] of slips) headers[name] = slipped(headers[name] ?? '', change);
          const changed = { ...signedRequest, headers };
          const here = await ours(changed);
          verdicts[here ? 'verified' : 'refused'] += 1;
          // A server takes white space around a value away before anybody reads it.
          if (here) expect(await theirs({ ...changed, headers: trimmed(headers) })).toBe(true);
        },
      ),
      { seed, numRuns: 1500 },
    );
    expect(Math.min(verdicts.verified, verdicts.refused)).toBeGreaterThan(200);
  });
});

/** Whatever stands in the three headers: no throw, and no name without a signature over just this. */
describe('malformed headers', () => {
  const GOOD = signedHeaders(AGENT, { params: { nonce: '"n"' } });
  const LEGACY = signedHeaders(AGENT, {
    signatureAgent: quoted(AGENT_ORIGIN),
    components: ['"@authority"', '"signature-agent"'],
  });
  const NAMES = ['signature', 'signature-input', 'signature-agent'] as const;
  const grammar = fc.array(fc.constantFrom(...PIECES), { maxLength: 60 }).map((parts) => parts.join(''));
  const anyText = fc.oneof(
    grammar,
    fc.string({ maxLength: 200 }),
    fc.string({ unit: 'binary', maxLength: 60 }),
  );
  const verify = (headers: Readonly<Record<string, string | readonly string[]>>): Promise<string | null> =>
    verifiedAgent(createDeps([AGENT]), createRequest(headers), NOW);

  it('never throw and never verify, whatever the text', async () => {
    const headers = fc.record({ signature: anyText, 'signature-input': anyText, 'signature-agent': anyText });
    await fc.assert(
      fc.asyncProperty(headers, async (any) => {
        expect(await verify({ host: GOOD['host'] ?? '', ...any })).toBeNull();
      }),
      { seed, numRuns: 600 },
    );
  });

  it.each(NAMES)('any text as %s beside two good ones never throws and never verifies', async (name) => {
    await fc.assert(
      fc.asyncProperty(anyText, fc.constantFrom(GOOD, LEGACY), async (text, good) => {
        fc.pre(text.trim() !== good[name]);
        expect(await verify({ ...good, [name]: text })).toBeNull();
      }),
      { seed, numRuns: 400 },
    );
  });

  it('header lines that are sent apart are one header', async () => {
    const [signature = '', input = ''] = [GOOD['signature'], GOOD['signature-input']];
    const lines = { signature: ['x=:AAAA:', signature], 'signature-input': ['x=("@authority")', input] };
    expect(await verify({ ...GOOD, ...lines })).toBe(AGENT_ORIGIN);
  });

  it('repeated header lines never throw', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...NAMES),
        fc.array(anyText, { maxLength: 4 }),
        async (name, lines) => {
          const verdict = await verify({ ...GOOD, [name]: [GOOD[name] ?? '', ...lines] });
          expect([null, AGENT_ORIGIN]).toContain(verdict);
        },
      ),
      { seed, numRuns: 300 },
    );
  });
});
