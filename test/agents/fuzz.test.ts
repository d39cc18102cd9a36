import { describe, expect, it } from 'vitest';
import { verifyBotAuth } from '../../src/agents/verify.ts';
import { announcedSeed, NOW } from '../support/make.ts';
import { fc } from '../support/property.ts';
import {
  AGENT_ORIGIN,
  createAgent,
  createDeps,
  createRequest,
  quoted,
  signedHeaders,
} from './support/agent.ts';

/** Whatever stands in the three headers: no throw, and no name without a signature over just this. */

const seed = Number(announcedSeed('bot-auth fuzz')) % 2 ** 31;
const AGENT = createAgent();
const GOOD = signedHeaders(AGENT, { params: { nonce: '"n"' } });
const LEGACY = signedHeaders(AGENT, {
  signatureAgent: quoted(AGENT_ORIGIN),
  components: ['"@authority"', '"signature-agent"'],
});
const NAMES = ['signature', 'signature-input', 'signature-agent'] as const;

function verify(headers: Readonly<Record<string, string | readonly string[]>>): Promise<string | null> {
  return verifyBotAuth(createDeps([AGENT]), createRequest(headers), NOW);
}

/** Pieces of the grammar of structured fields, put together in any order. */
const pieces = fc.constantFrom(
  'sig1',
  'sig2',
  '=',
  '(',
  ')',
  ';',
  ',',
  ' ',
  '"',
  '\\',
  ':',
  '?1',
  '@',
  '*',
  '%',
  '-',
  '.',
  '/',
  '1',
  '999999999999999',
  '"@authority"',
  '"signature-agent"',
  ';key="sig1"',
  ';req',
  ';sf',
  ';bs',
  ';tr',
  ';key=1',
  ';key',
  'created',
  'expires',
  'keyid',
  'tag="web-bot-auth"',
  'nonce',
  'alg="ed25519"',
  ':AAAA:',
  '://',
  '%"x"',
  '@1763630000',
  '\u00e4',
  '\t',
  '\n',
  '\0',
  '__proto__',
  'constructor',
);
const grammar = fc.array(pieces, { maxLength: 60 }).map((parts) => parts.join(''));
const anyText = fc.oneof(
  grammar,
  fc.string({ maxLength: 200 }),
  fc.string({ unit: 'binary', maxLength: 60 }),
);

describe('malformed headers', () => {
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
