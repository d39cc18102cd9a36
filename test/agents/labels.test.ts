import { describe, expect, it } from 'vitest';
import { verifyBotAuth } from '../../src/agents/verify.ts';
import { NOW } from '../support/make.ts';
import {
  AGENT_ORIGIN,
  createAgent,
  createDeps,
  createRequest,
  joinSignatures,
  quoted,
  type SignOptions,
  signedHeaders,
} from './support/agent.ts';

/** Labels, several signatures, and both forms of Signature-Agent. */

const AGENT = createAgent();
const OTHER = createAgent('https://other.example');
const STRANGER = createAgent('https://stranger.example');

const verify = (headers: Readonly<Record<string, string>>): Promise<string | null> =>
  verifyBotAuth(createDeps([AGENT, OTHER]), createRequest(headers), NOW);

const covering = (value: string): SignOptions => ({
  components: ['"@authority"', '"x-run"', '"signature-agent";key="sig1"'],
  headers: { 'x-run': value },
});

const LEGACY: SignOptions = {
  signatureAgent: quoted(AGENT_ORIGIN),
  components: ['"@authority"', '"signature-agent"'],
};

function relabel(headers: Readonly<Record<string, string>>, to: string): Record<string, string> {
  const rename = (name: string): Record<string, string> => ({
    [name]: `${headers[name]}`.replace(/^sig1=/, `${to}=`),
  });
  return { ...headers, ...rename('signature'), ...rename('signature-input') };
}

describe('Signature-Agent', () => {
  it.each<readonly [string, SignOptions, boolean]>([
    ['a dictionary member', {}, true],
    ['a member with parameters', { signatureAgent: `sig1=${quoted(AGENT_ORIGIN)};v=1` }, true],
    ['a member of another type', { signatureAgent: `sig1=${quoted(AGENT_ORIGIN)};type="jwks"` }, false],
    ['the whole address of the directory', { signatureAgent: `sig1=${quoted(AGENT.directory)}` }, true],
    ['another address on the same host', { signatureAgent: `sig1=${quoted(`${AGENT_ORIGIN}/keys`)}` }, false],
    [
      'a member beside others',
      { signatureAgent: `a="https://a.example", sig1=${quoted(AGENT_ORIGIN)}` },
      true,
    ],
    ['the deployed bare string', LEGACY, true],
    [
      'a bare string covered as a member',
      { ...LEGACY, components: ['"@authority"', '"signature-agent";key="sig1"'] },
      false,
    ],
    ['a dictionary covered as a whole', { components: ['"@authority"', '"signature-agent"'] }, false],
    ['http', { signatureAgent: 'sig1="http://agent.example"' }, false],
    ['data', { signatureAgent: 'sig1="data:application/json;base64,e30="' }, false],
    ['a token and not a string', { signatureAgent: 'sig1=agent.example' }, false],
    ['a list', { signatureAgent: `sig1=(${quoted(AGENT_ORIGIN)})` }, false],
    ['user information', { signatureAgent: 'sig1="https://x@agent.example"' }, false],
    ['a fragment', { signatureAgent: 'sig1="https://agent.example/#x"' }, false],
    ['an address of 600 characters', { signatureAgent: `sig1="${AGENT_ORIGIN}/${'a'.repeat(600)}"` }, false],
  ])('%s', async (_name, options, good) => {
    expect(await verify(signedHeaders(AGENT, options))).toBe(good ? AGENT_ORIGIN : null);
  });
});

describe('a label', () => {
  it.each(['sig1', 'a', 'my-agent_2.x*', '*'])('%s is as good as another', async (label) => {
    expect(await verify(signedHeaders(AGENT, { label }))).toBe(AGENT_ORIGIN);
  });

  it('may differ from the key of its Signature-Agent member, while no member has its name', async () => {
    const renamed = relabel(signedHeaders(AGENT), 'sig9');
    expect(await verify(renamed)).toBe(AGENT_ORIGIN);
  });

  it('cannot be given to a signature of somebody else', async () => {
    // The signature of AGENT under a label whose own member names the attacker, who could then pass as covered.
    const renamed = relabel(signedHeaders(AGENT), 'sig9');
    const header = `${renamed['signature-agent']}, sig9="https://stranger.example"`;
    expect(await verify({ ...renamed, 'signature-agent': header })).toBeNull();
  });
});

describe('several signatures', () => {
  const signed = (agent: typeof AGENT, label: string, options: SignOptions = {}): Record<string, string> =>
    signedHeaders(agent, { label, ...options });

  it('the first that verifies is the agent', async () => {
    expect(await verify(joinSignatures(signed(AGENT, 'a'), signed(OTHER, 'b')))).toBe(AGENT_ORIGIN);
    expect(await verify(joinSignatures(signed(OTHER, 'b'), signed(AGENT, 'a')))).toBe(
      'https://other.example',
    );
  });

  it('a stranger in front does not cost the agent its name', async () => {
    const headers = joinSignatures(signed(STRANGER, 's'), signed(AGENT, 'a'));
    expect(await verify(headers)).toBe(AGENT_ORIGIN);
  });

  it('a forged one in front does not either', async () => {
    const forged = signed(AGENT, 'f');
    const bytes = signed(STRANGER, 'f')['signature'] ?? '';
    expect(await verify(joinSignatures({ ...forged, signature: bytes }, signed(OTHER, 'b')))).toBe(
      'https://other.example',
    );
  });

  it('one with another tag is passed over', async () => {
    const tagged = signed(OTHER, 'b', { params: { tag: '"something-else"' } });
    expect(await verify(joinSignatures(tagged, signed(AGENT, 'a')))).toBe(AGENT_ORIGIN);
    expect(await verify(tagged)).toBeNull();
  });

  it('a malformed one takes the others with it: the header is one dictionary', async () => {
    const good = signed(AGENT, 'a');
    expect(await verify({ ...good, signature: `${good['signature']}, b=:%%%:` })).toBeNull();
    expect(await verify({ ...good, 'signature-input': `${good['signature-input']}, b=(` })).toBeNull();
  });
});

describe('too much of it', () => {
  const filler = (count: number): Record<string, string> => {
    const labels = Array.from({ length: count }, (_, i) => `l${i}`);
    return {
      'signature-input': labels.map((label) => `${label}=("@authority");tag="web-bot-auth"`).join(', '),
      signature: labels.map((label) => `${label}=:AAAA:`).join(', '),
    };
  };

  it('100 labels without the tag leave a good signature good', async () => {
    const tagless = {
      ...filler(100),
      'signature-input': (filler(100)['signature-input'] ?? '').replaceAll(';tag="web-bot-auth"', ''),
    };
    expect(await verify(joinSignatures(tagless, signedHeaders(AGENT)))).toBe(AGENT_ORIGIN);
  });

  it.each<readonly [string, (size: number) => SignOptions, number]>([
    [
      'covered components',
      (size) => {
        const names = Array.from({ length: size - 2 }, (_, i) => `x-${i}`);
        return {
          components: ['"@authority"', ...names.map(quoted), '"signature-agent";key="sig1"'],
          headers: Object.fromEntries(names.map((name) => [name, '1'])),
        };
      },
      16,
    ],
    ['characters of a covered header', (size) => covering('a'.repeat(size)), 2048],
    ['blanks in a row in a covered header', (size) => covering(`a${' '.repeat(size)}b`), 32],
  ])('too many %s are unverified', async (_what, options, max) => {
    for (const size of [max, max + 1]) {
      const headers = signedHeaders(AGENT, options(size));
      const expected = size === max ? AGENT_ORIGIN : null;
      expect(await verify(headers)).toBe(expected);
    }
  });

  it('a long covered header is refused, in blanks or in members', async () => {
    const labels = ['a', 'b', 'c', 'd'];
    const keys = Array.from({ length: 60 }, (_, i) => `"x-long";key="k${i}"`).join(' ');
    const signedLong = (text: string): Record<string, string> => ({
      ...signedHeaders(AGENT),
      'x-long': text,
      'signature-input': labels
        .map(
          (label) =>
            `${label}=("@authority" "x-long" ${keys} );tag="web-bot-auth";created=1;expires=2;keyid="k"`,
        )
        .join(', '),
      signature: labels.map((label) => `${label}=:AAAA:`).join(', '),
    });
    const members = Array.from({ length: 2000 }, (_, i) => `k${i}`).join(', ');
    for (const text of [`a${' '.repeat(12_000)}b`, members])
      expect(await verify(signedLong(text))).toBeNull();
  });

  it('64 KB of headers are refused, good signature or not', async () => {
    for (const name of ['signature', 'signature-input', 'signature-agent']) {
      const headers = signedHeaders(AGENT);
      expect(await verify({ ...headers, [name]: `${headers[name]}${' '.repeat(65_536)}` })).toBeNull();
      expect(await verify({ ...headers, [name]: 'x=('.repeat(21_845) })).toBeNull();
    }
    expect(await verify(joinSignatures(filler(700), signedHeaders(AGENT)))).toBeNull();
  });
});
