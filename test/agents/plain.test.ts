import { describe, expect, it } from 'vitest';
import { verifyGeneral } from '../../src/agents/general.ts';
import type { BotAuthRequest, Claim, OwnRequest } from '../../src/agents/message.ts';
import { type PlainSignature, readPlain } from '../../src/agents/plain.ts';
import { verifyBotAuth } from '../../src/agents/verify.ts';
import { announcedSeed, NOW } from '../support/make.ts';
import { fc } from '../support/property.ts';
import {
  AGENT_ORIGIN,
  HOST,
  makeAgent,
  makeDeps,
  makeRequest,
  NOW_SECONDS,
  quoted,
  type SignOptions,
  signedHeaders,
  TARGET,
} from './support/agent.ts';

/** The plain form is a short way to what http-message-sig says, and never to anything else. */

const seed = Number(announcedSeed('bot-auth plain')) % 2 ** 31;
const AGENT = makeAgent();
const NAMES = ['signature', 'signature-input', 'signature-agent'] as const;

const own = (request: BotAuthRequest): OwnRequest => ({ ...request, authority: HOST });

interface Read extends Claim {
  readonly base: string;
  readonly signature: string;
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

function shown({ components, parameters, directory, base, signature }: PlainSignature): Read {
  return { components, parameters, directory, base: text(base), signature: text(signature) };
}

/** What http-message-sig makes of the label's signature; null when it comes to none. */
async function byLibrary(request: OwnRequest, label: string, now: number): Promise<Read | null> {
  const read: { claim?: Claim; bytes?: { base: string; signature: string } } = {};
  const trust = (claim: Claim) => {
    read.claim = claim;
    return {
      algorithm: 'ed25519',
      verify: (base: Uint8Array, signature: Uint8Array) => {
        read.bytes = { base: text(base), signature: text(signature) };
        return true;
      },
    };
  };
  await verifyGeneral(request, label, now, trust).catch(() => {});
  if (!read.claim || !read.bytes) return null;
  const { components, parameters, directory } = read.claim;
  return {
    components: components.map(({ name, parameters: own }) => ({ name, parameters: { ...own } })),
    parameters: { ...parameters },
    directory,
    ...read.bytes,
  };
}

/** The library looks at times and parameters itself: a moment at which it has nothing to say against these, or null. */
function momentFor({ parameters }: PlainSignature): number | null {
  const { created, expires, keyid, tag, alg = 'ed25519' } = parameters;
  if (created === undefined || expires === undefined || keyid === undefined || tag === undefined) return null;
  return alg === 'ed25519' && created <= expires ? created : null;
}

const COMPONENTS = ['"@method"', '"@path"', '"@target-uri"', '"x-run"', '"host"'];
const ODD_COMPONENTS = [
  '"@query"',
  '"@scheme"',
  '"@request-target"',
  '"x-missing"',
  '"x-run";bs',
  '"@authority"',
];
const RUNS = ['1', 'a, b', '  padded  ', 'two  blanks', '"quoted"', 'caf\u00e9', ''];

/** An empty list, or now and then one with something in it. */
const rarely = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<readonly T[]> =>
  fc.oneof({ weight: 9, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.tuple(value) });

const signed = fc
  .record({
    method: fc.constantFrom('POST', 'GET'),
    query: fc.constantFrom('', '?', '?a=1&b=2', '?q=%C3%A4', '?a?b', '//x', '/..;a'),
    label: fc.constantFrom('sig1', 'a', 'b-2', '*', 'x.y_z'),
    more: fc.subarray(COMPONENTS),
    odd: rarely(fc.constantFrom(...ODD_COMPONENTS)),
    run: fc.constantFrom(...RUNS),
    nonce: fc.option(
      fc.oneof(fc.base64String({ minLength: 4, maxLength: 24 }), fc.constantFrom('', '; ,', '(@)')),
    ),
    alg: fc.constantFrom(null, '"ed25519"', '"ed25519"', '"rsa-pss-sha512"', 'ed25519'),
    legacy: fc.boolean(),
    zeros: rarely(fc.constantFrom('0', '00', '-')),
    form: fc.constantFrom('', '', '', ';type="jwks"', ', other="https://other.example"'),
  })
  .map(({ method, query, label, more, run, odd, nonce, alg, legacy, zeros, form }): BotAuthRequest => {
    const target = `${TARGET}${query}`;
    const options: SignOptions = {
      label,
      method,
      target,
      components: [
        '"@authority"',
        ...more,
        ...odd,
        legacy ? '"signature-agent"' : `"signature-agent";key="${label}"`,
      ],
      params: {
        created: `${zeros.join('')}${NOW_SECONDS - 10}`,
        ...(nonce === null ? {} : { nonce: quoted(nonce) }),
        ...(alg === null ? {} : { alg }),
      },
      headers: { 'x-run': run },
      ...(legacy ? { signatureAgent: quoted(AGENT_ORIGIN) } : {}),
    };
    const headers = signedHeaders(AGENT, options);
    const agent = `${headers['signature-agent']}${legacy ? '' : form}`;
    return makeRequest({ ...headers, 'signature-agent': agent }, { method, target });
  });

/** Pieces of the grammar, and of what only looks like it. */
const pieces = fc.constantFrom(
  ...'= ( ) ; , : " \\ ? @ * % - . / # 0 1 -0 00 1.0 999999999999999 9999999999999999 ?1 :AA==: A'.split(' '),
  ' ',
  '  ',
  '\t',
  '\n',
  '\u00e9',
  '"@authority"',
  '"@method"',
  '"@path"',
  '"@query"',
  '"@status"',
  '"@"',
  '"X-Run"',
  '"x-run"',
  '"constructor"',
  '"__proto__"',
  '"signature"',
  '"signature-agent"',
  '"missing"',
  ';req',
  ';sf',
  ';bs',
  ';key="sig1"',
  ';key="a"',
  ';key=sig1',
  ';created=1',
  ';expires=1',
  ';nonce="n"',
  ';keyid="k"',
  ';tag="web-bot-auth"',
  ';tag=web-bot-auth',
  ';alg="ed25519"',
  ';x=1',
  ', sig2=()',
  ',sig1=()',
);
const slip = fc.record({
  at: fc.nat(500),
  cut: fc.constantFrom(0, 0, 1, 2, 12),
  put: fc.oneof(pieces, fc.constant('')),
});
type Slip = { readonly at: number; readonly cut: number; readonly put: string };

/** At a place where something begins or ends, more often than anywhere. */
function mutate(value: string, { at, cut, put }: Slip): string {
  const seams = [
    0,
    value.length,
    ...[...value.matchAll(/[^\w+/-]/g)].flatMap(({ index }) => [index, index + 1]),
  ];
  const from = at < 400 ? (seams[at % seams.length] ?? 0) : at % (value.length + 1);
  return value.slice(0, from) + put + value.slice(from + cut);
}

const place = fc.constantFrom(...NAMES, 'signature-input', 'signature-input', 'x-run', 'target', 'method');

function slipped(request: BotAuthRequest, slips: readonly (readonly [string, Slip])[]): BotAuthRequest {
  let { target, method } = request;
  const headers = { ...request.headers };
  for (const [where, change] of slips) {
    if (where === 'target') target = mutate(target, change);
    else if (where === 'method') method = mutate(method, change);
    else headers[where] = mutate(String(headers[where]), change);
  }
  return { ...request, target, method, headers };
}

const changed = fc
  .tuple(signed, fc.array(fc.tuple(place, slip), { maxLength: 3 }))
  .map(([request, slips]) => slipped(request, slips));

describe('what is read in the plain form', () => {
  it('is what http-message-sig reads, to the byte', async () => {
    const seen = { plain: 0, other: 0 };
    await fc.assert(
      fc.asyncProperty(changed, async (request) => {
        const plain = readPlain(own(request));
        seen[plain ? 'plain' : 'other'] += 1;
        const now = plain && momentFor(plain);
        if (plain && now !== null)
          expect(shown(plain)).toEqual(await byLibrary(own(request), plain.label, now));
      }),
      { seed, numRuns: 3000 },
    );
    expect(Math.min(seen.plain, seen.other)).toBeGreaterThan(400);
  });

  it('comes to the verdict that http-message-sig comes to', async () => {
    const verdicts = { good: 0, refused: 0 };
    // A blank in front says nothing, and it is not the plain form.
    const roundabout = ({ headers, ...rest }: BotAuthRequest): BotAuthRequest => ({
      ...rest,
      headers: { ...headers, 'signature-input': ` ${String(headers['signature-input'])}` },
    });
    await fc.assert(
      fc.asyncProperty(changed, async (request) => {
        expect(readPlain(own(roundabout(request)))).toBeNull();
        const short = await verifyBotAuth(makeDeps([AGENT]), request, NOW);
        expect(short).toBe(await verifyBotAuth(makeDeps([AGENT]), roundabout(request), NOW));
        if (readPlain(own(request))) verdicts[short === null ? 'refused' : 'good'] += 1;
      }),
      { seed, numRuns: 2000 },
    );
    expect(Math.min(verdicts.good, verdicts.refused)).toBeGreaterThan(100);
  });
});

describe('the plain form', () => {
  const read = (options: SignOptions, over: Partial<BotAuthRequest> = {}): PlainSignature | null =>
    readPlain(own(makeRequest(signedHeaders(AGENT, options), over)));
  const member = '"signature-agent";key="sig1"';

  it.each<readonly [string, SignOptions]>([
    ['what the drafts show', {}],
    ['a nonce and the algorithm', { params: { nonce: '"bm9uY2U="', alg: '"ed25519"' } }],
    [
      'the deployed bare string',
      { signatureAgent: quoted(AGENT_ORIGIN), components: ['"@authority"', '"signature-agent"'] },
    ],
    [
      'method, path and a header',
      { headers: { 'x-run': '1' }, components: ['"@authority"', '"@method"', '"@path"', '"x-run"', member] },
    ],
  ])('is %s', (_name, options) => {
    expect(read(options)?.directory).toBe(AGENT.directory);
  });

  it.each<readonly [string, SignOptions, Partial<BotAuthRequest>]>([
    ['a parameter of another kind', { params: { x: '1' } }, {}],
    ['an escaped string', { params: { nonce: '"a\\"b"' } }, {}],
    ['a number with a leading zero', { params: { created: `0${NOW_SECONDS}` } }, {}],
    ['a component with a parameter', { components: ['"@authority"', '"host";sf', member] }, {}],
    ['a component twice', { components: ['"@authority"', '"@authority"', member] }, {}],
    ['a component that is not there', { components: ['"@authority"', '"x-missing"', member] }, {}],
    ['a target with a fragment', {}, { target: `${TARGET}#a` }],
    ['a target without a path', {}, { target: '*' }],
    ['two lines of one header', {}, { headers: { ...signedHeaders(AGENT), 'signature-input': ['a', 'b'] } }],
  ])('is not %s', (_name, options, over) => {
    expect(read(options, over)).toBeNull();
  });
});
