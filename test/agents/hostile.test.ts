import { describe, expect, it } from 'vitest';
import { type BotAuthRequest, verifyBotAuth } from '../../src/agents/verify.ts';
import { NOW } from '../support/make.ts';
import {
  AGENT_ORIGIN,
  createAgent,
  createDeps,
  createRequest,
  HOST,
  joinSignatures,
  NOW_SECONDS,
  quoted,
  type SignOptions,
  signedHeaders,
  TARGET,
} from './support/agent.ts';

/** Each attack tries to gain a name that is not the sender's. */
const AGENT = createAgent();
const STRANGER = createAgent('https://stranger.example');
const MEMBER = '"signature-agent";key="sig1"';

type Headers = Readonly<Record<string, string>>;
const verify = (headers: Headers, over: Partial<BotAuthRequest> = {}): Promise<string | null> =>
  verifyBotAuth(createDeps([AGENT]), createRequest(headers, over), NOW);

/** One header of a good request rewritten after it was signed. */
function rewritten(name: string, change: (value: string) => string, options: SignOptions = {}): Headers {
  const headers = signedHeaders(AGENT, { components: ['"@authority"', '"@query"', MEMBER], ...options });
  return { ...headers, [name]: change(headers[name] ?? '') };
}

const good = (options: SignOptions = {}): Headers =>
  signedHeaders(AGENT, { components: ['"@authority"', '"@query"', MEMBER], ...options });

describe('labels', () => {
  const other = signedHeaders(STRANGER, { label: 'sig1' });
  it.each<readonly [string, Headers]>([
    ['one twice in Signature-Input', rewritten('signature-input', (value) => `${value}, ${value}`)],
    ['one twice in Signature', rewritten('signature', (value) => `${value}, ${value}`)],
    ['one of another signature first', joinSignatures(other, good())],
    ['one of another signature last', joinSignatures(good(), other)],
    ['one in Signature alone', rewritten('signature', (value) => `${value}, more=:AAAA:`)],
    ['one in Signature-Input alone', rewritten('signature-input', (value) => `${value}, more=()`)],
    ['a capital one', rewritten('signature', (value) => value.replace('sig1', 'Sig1'))],
    ['one with a parameter in Signature', rewritten('signature', (value) => `${value};a`)],
    ['one without a value', rewritten('signature', () => 'sig1')],
    ['one with a string for bytes', rewritten('signature', (value) => value.replaceAll(':', '"'))],
    [
      'one that is no inner list',
      rewritten('signature-input', (value) => value.replace(/\(.*\)/, '"@authority"')),
    ],
  ])('%s is refused', async (_name, headers) => {
    expect(await verify(headers)).toBeNull();
  });

  it('four signatures with the tag are tried, and no fifth', async () => {
    const forged = ['a', 'b', 'c', 'd'].map((label) =>
      signedHeaders(STRANGER, { label, signatureAgent: `${label}=${quoted(AGENT_ORIGIN)}` }),
    );
    expect(await verify(joinSignatures(...forged.slice(1), good()))).toBe(AGENT_ORIGIN);
    expect(await verify(joinSignatures(...forged, good()))).toBeNull();
  });
});

describe('parameters', () => {
  const input = (change: (value: string) => string) => rewritten('signature-input', change);
  it.each<readonly [string, Headers]>([
    ['created twice', input((value) => `${value};created=${NOW_SECONDS - 10}`)],
    ['expires twice, the second later', input((value) => `${value};expires=${NOW_SECONDS + 80_000}`)],
    ['tag twice', input((value) => `${value};tag="web-bot-auth"`)],
    ['keyid twice', input((value) => `${value};keyid=${quoted(AGENT.thumbprint)}`)],
    ['one nobody knows twice', good({ params: { x: '1;x=1' } })],
    ['a component parameter twice', input((value) => value.replace(MEMBER, `${MEMBER};key="sig1"`))],
    ['alg of another kind', good({ params: { alg: '"hmac-sha256"' } })],
    ['alg in capitals', good({ params: { alg: '"Ed25519"' } })],
    ['alg as a token', good({ params: { alg: 'ed25519' } })],
    ['alg empty', good({ params: { alg: '""' } })],
    ['a capital name', input((value) => value.replace(';created', ';Created'))],
    ['a tag that begins so', good({ params: { tag: '"web-bot-auth2"' } })],
    ['a tag that ends so', good({ params: { tag: '"x-web-bot-auth"' } })],
    ['created true', good({ params: { created: null, x: '1;created' } })],
    ['a display string', good({ params: { nonce: '%"abc"' } })],
  ])('%s is refused', async (_name, headers) => {
    expect(await verify(headers)).toBeNull();
  });
});

describe('components', () => {
  const covering = (...components: string[]): Headers =>
    signedHeaders(AGENT, {
      components: ['"@authority"', ...components, MEMBER],
      headers: { 'x-run': '1', 'x-dict': 'a=1' },
    });
  it.each<readonly [string, Headers]>([
    ...[';req', ';bs', ';sf', ';tr', ';key="a"', ';name="a"', ';x', ';sf=?0'].map(
      (parameter) => [`@authority${parameter}`, covering(`"@method"${parameter}`)] as const,
    ),
    ...[';req', ';bs', ';sf', ';tr', ';x', ';key', ';key=a', ';key=1'].map(
      (parameter) => [`a field with ${parameter}`, covering(`"x-run"${parameter}`)] as const,
    ),
    ['a field in capitals', covering('"X-Run"')],
    ['a derived one in capitals', covering('"@Method"')],
    ['one that does not exist', covering('"@host"')],
    ['a query parameter', covering('"@query-param";name="a"')],
    ['the status', covering('"@status"')],
    ['the parameters themselves', covering('"@signature-params"')],
    ['an empty name', covering('""')],
    ['a name with a blank', covering('"x run"')],
    ['a name with a line break', covering('"x-run\\n"')],
    ['a token', covering('x-run')],
    ['a number', covering('1')],
    ['one twice', covering('"x-run"', '"x-run"')],
    ['the directory as a member and as a whole', covering('"signature-agent"')],
    ['a member that is not there', covering('"x-dict";key="b"')],
    ['a member of what is no dictionary', covering('"x-run";key="1"')],
  ])('%s: refused', async (_name, headers) => {
    expect(await verify(headers)).toBeNull();
  });

  it('four members are read, and no fifth', async () => {
    const members = (count: number): Headers => {
      const keys = Array.from({ length: count - 1 }, (_, i) => `k${i}`);
      const dictionary = keys.map((key) => `${key}=1`).join(', ');
      const components = ['"@authority"', ...keys.map((key) => `"x-dict";key="${key}"`), MEMBER];
      return signedHeaders(AGENT, { components, headers: { 'x-dict': dictionary } });
    };
    expect(await verify(members(4))).toBe(AGENT_ORIGIN);
    expect(await verify(members(5))).toBeNull();
  });

  it('a member of another dictionary is fine', async () => {
    const headers = covering('"x-dict";key="a"');
    expect(await verify(headers)).toBe(AGENT_ORIGIN);
    expect(await verify({ ...headers, 'x-dict': 'a=2' })).toBeNull();
  });
});

describe('white space and lines', () => {
  it.each<readonly [string, (headers: Headers) => Headers, boolean]>([
    ['a line break in a covered field', (headers) => ({ ...headers, 'x-run': '1\r\n 2' }), false],
    [
      'a folded Signature-Input',
      (headers) => ({
        ...headers,
        'signature-input': headers['signature-input']?.replace('" "', '"\r\n "') ?? '',
      }),
      false,
    ],
    [
      'a tab between components',
      (headers) => ({
        ...headers,
        'signature-input': headers['signature-input']?.replace('" "', '"\t"') ?? '',
      }),
      false,
    ],
    [
      'blanks between components',
      (headers) => ({
        ...headers,
        'signature-input': headers['signature-input']?.replace('" "', '"   "') ?? '',
      }),
      true,
    ],
    ['a form feed around a field', (headers) => ({ ...headers, 'x-run': '\f1' }), false],
    ['a no-break space around a field', (headers) => ({ ...headers, 'x-run': '1\u00a0' }), false],
    ['a byte order mark', (headers) => ({ ...headers, 'x-run': '\ufeff1' }), false],
    ['blanks around a field', (headers) => ({ ...headers, 'x-run': ' \t1 ' }), true],
    ['NUL in a field', (headers) => ({ ...headers, 'x-run': '1\0' }), false],
  ])('%s', async (_name, change, isGood) => {
    const headers = signedHeaders(AGENT, {
      components: ['"@authority"', '"x-run"', '"@query"', MEMBER],
      headers: { 'x-run': '1' },
    });
    expect(await verify(headers)).toBe(AGENT_ORIGIN);
    expect(await verify(change(headers))).toBe(isGood ? AGENT_ORIGIN : null);
  });
});

describe('the name of the request', () => {
  const elsewhere = (target: string): Headers =>
    signedHeaders(AGENT, {
      host: 'other.example',
      components: ['"@authority"', '"@scheme"', MEMBER],
      target,
    });

  it.each([
    '@other.example/',
    '@other.example',
    ':x@other.example/_fp/i/v1',
    '.other.example/',
    '*',
    '',
    'x',
  ])('is the Host, whatever a target %j would make of it', async (target) => {
    const signed = { ...elsewhere(TARGET), host: HOST };
    expect(await verify(signed, { target })).toBeNull();
    expect(await verify(good(), { target })).toBeNull();
  });

  it('is not the one that the signature names', async () => {
    expect(await verify(elsewhere(TARGET))).toBeNull();
    expect(await verify({ ...elsewhere(TARGET), host: HOST })).toBeNull();
  });
});

describe('Signature-Agent with a type', () => {
  const typed = (type: string, over: SignOptions = {}): Headers =>
    signedHeaders(AGENT, { signatureAgent: `sig1=${quoted(AGENT_ORIGIN)}${type}`, ...over });
  const bare = (type: string): Headers =>
    signedHeaders(AGENT, {
      signatureAgent: `${quoted(AGENT_ORIGIN)}${type}`,
      components: ['"@authority"', '"signature-agent"'],
    });

  it.each([
    ['', true],
    [';type=directory', true],
    [';type="directory"', true],
    [';x=1', true],
    [';type=jwks_uri', false],
    [';type="jwks_uri"', false],
    [';type=cimd', false],
    [';type="Directory"', false],
    [';type', false],
    [';type=1', false],
    [';type=""', false],
    [';type=directory;type=cimd', false],
  ])('%j', async (type, isDirectory) => {
    expect(await verify(typed(type))).toBe(isDirectory ? AGENT_ORIGIN : null);
    expect(await verify(bare(type))).toBe(isDirectory ? AGENT_ORIGIN : null);
  });

  it('that is ignored is not looked up either', async () => {
    const requestedUrls: string[] = [];
    const deps = createDeps([], {
      findKey: (directory) => {
        requestedUrls.push(directory);
        return null;
      },
    });
    await verifyBotAuth(deps, createRequest(typed(';type=jwks_uri')), NOW);
    expect(requestedUrls).toEqual([]);
    await verifyBotAuth(deps, createRequest(typed(';type=directory')), NOW);
    expect(requestedUrls).toEqual([AGENT.directory]);
  });
});
