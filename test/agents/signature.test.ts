import { describe, expect, it } from 'vitest';
import { type BotAuthRequest, publicNames } from '../../src/agents/verify.ts';
import { loadConfig } from '../../src/config.ts';
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
  verifiedAgent,
} from './support/agent.ts';

/** gpd demands more of a signature than the known answers of `matrix.test.ts`: each row is one demand just past its limit. */

const AGENT = createAgent();
const OTHER = createAgent('https://other.example');
const STRANGER = createAgent('https://stranger.example');
const MEMBER = '"signature-agent";key="sig1"';

type Headers = Readonly<Record<string, string>>;

const verify = (headers: Headers, over: Partial<BotAuthRequest> = {}): Promise<string | null> =>
  verifiedAgent(createDeps([AGENT, OTHER]), createRequest(headers, over), NOW);

const signed = (options: SignOptions = {}, agent = AGENT): Headers => signedHeaders(agent, options);
const covering = (...components: string[]): SignOptions => ({
  components: ['"@authority"', ...components, MEMBER],
  headers: { 'x-run': '1', 'x-dict': 'a=1' },
});

/** One header of a good request rewritten after it was signed. */
function rewritten(name: string, change: (value: string) => string, headers = signed()): Headers {
  return { ...headers, [name]: change(headers[name] ?? '') };
}

const relabel = (headers: Headers, label: string): Headers =>
  rewritten(
    'signature',
    (value) => value.replace('sig1', label),
    rewritten('signature-input', (value) => value.replace('sig1', label), headers),
  );

describe('a signature', () => {
  it('verifies as the origin of its directory, with parameters that nobody knows', async () => {
    expect(await verify(signed())).toBe(AGENT_ORIGIN);
    const params = { alg: '"ed25519"', nonce: '"abc"', 'x-more': '1', flag: '?0' };
    expect(await verify(signed({ params }))).toBe(AGENT_ORIGIN);
  });

  it('is none without any one of its three headers', async () => {
    for (const name of ['signature', 'signature-input', 'signature-agent']) {
      const { [name]: _left, ...rest } = signed();
      expect(await verify(rest)).toBeNull();
    }
  });

  it("does not verify by an unknown key, or by another directory's", async () => {
    expect(await verify(signed({}, createAgent()))).toBeNull();
    expect(await verify(signed({}, { ...OTHER, origin: AGENT.origin }))).toBeNull();
  });

  const DAY = 86_400;
  it.each([
    ['valid for exactly 24 hours', -10, DAY - 10, true],
    ['valid for 24 hours and a second', -10, DAY - 9, false],
    ['created 30 s from now', 30, 300, true],
    ['created 31 s from now', 31, 300, false],
    ['expiring this second', -60, 0, true],
    ['expired a second ago', -60, -1, false],
    ['created as it expires', 0, 0, true],
    ['created after it expires', 20, 10, false],
  ])('%s: %d s, %d s: %s', async (_name, created, expires, good) => {
    const params = { created: String(NOW_SECONDS + created), expires: String(NOW_SECONDS + expires) };
    expect(await verify(signed({ params }))).toBe(good ? AGENT_ORIGIN : null);
  });

  it.each<readonly [string, SignOptions['params']]>([
    ['created as a decimal', { created: '1763630000.5' }],
    ['expires as a string', { expires: quoted(String(NOW_SECONDS + 60)) }],
    ['a tag in capitals', { tag: '"Web-Bot-Auth"' }],
    ['a tag that begins so', { tag: '"web-bot-auth2"' }],
    ['the algorithm in capitals', { alg: '"ED25519"' }],
    ['no thumbprint as keyid', { keyid: '"key-1"' }],
    ['a nonce that is a number', { nonce: '1' }],
    ['a parameter twice', { x: '1;x=1' }],
  ])('with %s is refused', async (_name, params) => {
    expect(await verify(signed({ params: params ?? {} }))).toBeNull();
  });

  it.each(['created=1', 'tag="web-bot-auth"', `keyid=${quoted(AGENT.thumbprint)}`])(
    'with a second %s is refused',
    async (parameter) => {
      expect(await verify(rewritten('signature-input', (value) => `${value};${parameter}`))).toBeNull();
    },
  );
});

describe('what it covers', () => {
  it.each<readonly [string, readonly string[], boolean]>([
    ['the directory without a name of ours', [MEMBER], false],
    ['the path instead of the authority', ['"@path"', MEMBER], false],
    ['the directory twice', ['"@authority"', MEMBER, MEMBER], false],
    ['the directory as a member and as a whole', ['"@authority"', '"signature-agent"', MEMBER], true],
    ['a member that is not there', ['"@authority"', '"x-dict";key="b"', MEMBER], false],
    ['a member of what is no dictionary', ['"@authority"', '"x-run";key="1"', MEMBER], false],
    ['a part of the related request', ['"@authority";req', MEMBER], false],
    ['a field as bytes', ['"@authority"', '"x-run";bs', MEMBER], false],
    ['a token for a name', ['"@authority"', 'x-run', MEMBER], false],
    ['method, path and query', ['"@authority"', '"@method"', '"@path"', '"@query"', MEMBER], true],
    ['a member of another dictionary', ['"@authority"', '"x-dict";key="a"', MEMBER], true],
  ])('%s: %s %s', async (_name, components, good) => {
    expect(await verify(signed({ ...covering(), components }))).toBe(good ? AGENT_ORIGIN : null);
  });

  it.each([
    ['method', '"@method"', { method: 'PUT' }],
    ['path', '"@path"', { target: '/_fp/i/v2' }],
    ['query', '"@query"', { target: `${TARGET}?x=1` }],
    ['scheme', '"@scheme"', { https: false }],
    ['target URI', '"@target-uri"', { target: `${TARGET}?x=1` }],
  ])('another %s than the one covered is refused', async (_name, component, over) => {
    expect(await verify(signed(covering(component)))).toBe(AGENT_ORIGIN);
    expect(await verify(signed(covering(component)), over)).toBeNull();
  });

  it.each<readonly [string, Partial<BotAuthRequest>]>([
    ['a blank in the method', { method: 'G T' }],
    ['a line of the base in the method', { method: 'GET\n"@path": /' }],
    ['a line of the base in the target', { target: '/\n"@query": ?' }],
    ['a target that is not ASCII', { target: '/caf\u00e9' }],
    ['a fragment', { target: '/a#b' }],
  ])('%s is refused, though it was signed so', async (_name, over) => {
    const { method = 'POST', target = TARGET } = over;
    const components = ['"@authority"', '"@method"', '"@target-uri"', MEMBER];
    expect(await verify(signed({ components, method, target }), over)).toBeNull();
  });

  it.each(['x=@1763630000', 'x=%"a"', '"x-dict";key="a"'])(
    'a dictionary with %s counts only as RFC 8941 reads it',
    async (value) => {
      const headers = { 'x-dict': `a=1, ${value}` };
      const components = ['"@authority"', '"x-dict";key="a"', MEMBER];
      expect(await verify(signed({ components, headers }))).toBeNull();
    },
  );

  it.each([
    ['blanks around it', ' \t1 ', true],
    ['another value', '2', false],
    ['a line that the base would have', '1\n"@authority": evil.example', false],
    ['a no-break space around it', '1\u00a0', false],
    ['NUL', '1\0', false],
  ])('a covered header counts with its value: %s', async (_name, value, good) => {
    const headers = rewritten('x-run', () => value, signed(covering('"x-run"')));
    expect(await verify(headers)).toBe(good ? AGENT_ORIGIN : null);
  });

  it('an odd byte in a header that is not covered costs the agent nothing', async () => {
    const odd = { 'x-name': 'Grüße', cookie: 'a=\u00ff', 'user-agent': 'Bot/1 – x', 'signature-note': 'ü' };
    expect(await verify({ ...signed(), ...odd })).toBe(AGENT_ORIGIN);
  });

  it.each<readonly [string, number, (size: number) => SignOptions]>([
    [
      'covered components',
      16,
      (size) => {
        const names = Array.from({ length: size - 2 }, (_, i) => `x-${i}`);
        const headers = Object.fromEntries(names.map((name) => [name, '1']));
        return { ...covering(...names.map(quoted)), headers };
      },
    ],
    [
      'members',
      6,
      (size) => {
        const keys = Array.from({ length: size - 1 }, (_, i) => `k${i}`);
        const headers = { 'x-dict': keys.map((key) => `${key}=1`).join(', ') };
        return { ...covering(...keys.map((key) => `"x-dict";key="${key}"`)), headers };
      },
    ],
    [
      'characters of a covered header',
      2048,
      (size) => ({ ...covering('"x-run"'), headers: { 'x-run': 'a'.repeat(size) } }),
    ],
    [
      'blanks in a row in a covered header',
      32,
      (size) => ({ ...covering('"x-run"'), headers: { 'x-run': `a${' '.repeat(size)}b` } }),
    ],
  ])('%s: %d, and not one more', async (_what, max, options) => {
    expect(await verify(signed(options(max)))).toBe(AGENT_ORIGIN);
    expect(await verify(signed(options(max + 1)))).toBeNull();
  });
});

describe('Signature-Agent', () => {
  const BARE = ['"@authority"', '"signature-agent"'];
  it.each<readonly [string, SignOptions, boolean]>([
    ['the whole address of the directory', { signatureAgent: `sig1=${quoted(AGENT.directory)}` }, true],
    ['another address on the same host', { signatureAgent: `sig1=${quoted(`${AGENT_ORIGIN}/keys`)}` }, false],
    [
      'a member beside others',
      { signatureAgent: `a="https://a.example", sig1=${quoted(AGENT_ORIGIN)}` },
      true,
    ],
    ['a bare string covered as a member', { signatureAgent: quoted(AGENT_ORIGIN) }, false],
    ['a dictionary covered as a whole', { components: BARE }, false],
    ['no https', { signatureAgent: 'sig1="http://agent.example"' }, false],
    ['a token and not a string', { signatureAgent: 'sig1=agent.example' }, false],
    ['a list', { signatureAgent: `sig1=(${quoted(AGENT_ORIGIN)})` }, false],
  ])('%s', async (_name, options, good) => {
    expect(await verify(signed(options))).toBe(good ? AGENT_ORIGIN : null);
  });

  it.each([
    ['', true],
    [';type="directory"', false],
    [';x=1', false],
    [';type=jwks_uri', false],
    [';type="Directory"', false],
    [';type', false],
    [';type=1', false],
  ])('with %j', async (type, isDirectory) => {
    const bare = { signatureAgent: `${quoted(AGENT_ORIGIN)}${type}`, components: BARE };
    for (const options of [{ signatureAgent: `sig1=${quoted(AGENT_ORIGIN)}${type}` }, bare])
      expect(await verify(signed(options))).toBe(isDirectory ? AGENT_ORIGIN : null);
  });

  it('with parameters is not looked up either', async () => {
    const urls: string[] = [];
    const findKey = (url: string) => {
      urls.push(url);
      return 'key-set-unknown' as const;
    };
    const deps = createDeps([], { findKey });
    for (const parameters of [';type=jwks_uri', '']) {
      const signatureAgent = `sig1=${quoted(AGENT_ORIGIN)}${parameters}`;
      await verifiedAgent(deps, createRequest(signed({ signatureAgent })), NOW);
    }
    expect(urls).toEqual([AGENT.directory]);
  });
});

describe('labels', () => {
  it.each(['a', 'my-agent_2.x*', '*'])('%s is as good as another', async (label) => {
    expect(await verify(signed({ label }))).toBe(AGENT_ORIGIN);
  });

  it('one must be the key of its member', async () => {
    const renamed = relabel(signed(), 'sig9');
    expect(await verify(renamed)).toBeNull();
    // A relabelled signature whose own member names the attacker could otherwise pass as covered.
    const header = `${renamed['signature-agent']}, sig9=${quoted(STRANGER.origin)}`;
    expect(await verify({ ...renamed, 'signature-agent': header })).toBeNull();
  });

  it.each<readonly [string, Headers]>([
    ['one twice in Signature-Input', rewritten('signature-input', (value) => `${value}, ${value}`)],
    ['one twice in Signature', rewritten('signature', (value) => `${value}, ${value}`)],
    ['one of another signature first', joinSignatures(signed({}, STRANGER), signed())],
    ['one of another signature last', joinSignatures(signed(), signed({}, STRANGER))],
    ['one in Signature alone', rewritten('signature', (value) => `${value}, more=:AAAA:`)],
    ['one in Signature-Input alone', rewritten('signature-input', (value) => `${value}, more=()`)],
    ['a malformed one beside it', rewritten('signature', (value) => `${value}, b=:%%%:`)],
    [
      'one that is no inner list',
      rewritten('signature-input', (value) => value.replace(/\(.*\)/, '"@authority"')),
    ],
  ])('%s is refused', async (_name, headers) => {
    expect(await verify(headers)).toBeNull();
  });

  it('the first that verifies is the agent, whatever strangers, forgers and other tags stand before it', async () => {
    const [a, b] = [signed({ label: 'a' }), signed({ label: 'b' }, OTHER)];
    expect(await verify(joinSignatures(a, b))).toBe(AGENT_ORIGIN);
    expect(await verify(joinSignatures(b, a))).toBe(OTHER.origin);
    const stranger = signed({ label: 's' }, STRANGER);
    const forged = { ...signed({ label: 's' }), signature: stranger['signature'] ?? '' };
    const tagged = signed({ label: 's', params: { tag: '"something-else"' } }, OTHER);
    for (const first of [stranger, forged, tagged])
      expect(await verify(joinSignatures(first, a))).toBe(AGENT_ORIGIN);
  });

  it('four with the tag are tried, and no fifth; 100 without it cost nothing', async () => {
    const forged = ['a', 'b', 'c', 'd'].map((label) =>
      signed({ label, signatureAgent: `${label}=${quoted(AGENT_ORIGIN)}` }, STRANGER),
    );
    expect(await verify(joinSignatures(...forged.slice(1), signed()))).toBe(AGENT_ORIGIN);
    expect(await verify(joinSignatures(...forged, signed()))).toBeNull();
    const labels = Array.from({ length: 100 }, (_, i) => `l${i}`);
    const untagged = {
      'signature-input': labels.map((label) => `${label}=("@authority")`).join(', '),
      signature: labels.map((label) => `${label}=:AAAA:`).join(', '),
    };
    expect(await verify(joinSignatures(untagged, signed()))).toBe(AGENT_ORIGIN);
  });

  it('8 KB of headers are refused, good signature or not', async () => {
    for (const name of ['signature', 'signature-input', 'signature-agent'])
      expect(await verify(rewritten(name, (value) => `${value}${' '.repeat(8192)}`))).toBeNull();
  });
});

/** `@authority` is one of our configured public names, or the signature was made for somebody else. */
describe('our public names', () => {
  interface Asked {
    readonly authorities?: string;
    readonly signedFor: string;
    /** The Host header as it arrived; by default the one that was signed. */
    readonly host?: string;
    readonly https?: boolean;
  }
  function ask({ authorities = '', signedFor, host = signedFor, https = true }: Asked) {
    const environment = { GPD_BASE_URL: 'https://gpd.example', GPD_AUTHORITIES: authorities };
    const names = publicNames(loadConfig({ environment }), 'https://gpd.example');
    const deps = createDeps([AGENT], {
      policy: { authorities: () => names, tags: ['web-bot-auth'], maxValiditySeconds: 86_400 },
    });
    const headers = { ...signed({ host: signedFor, scheme: https ? 'https' : 'http' }), host };
    return verifiedAgent(deps, createRequest(headers, { https }), NOW);
  }

  it.each<Asked>([
    { signedFor: 'gpd.example' },
    { signedFor: 'gpd.example', host: 'GPD.Example:443' },
    { signedFor: 'gpd.example', host: 'gpd.example:80', https: false },
    { authorities: 'a.example ID.Shop.Example', signedFor: 'id.shop.example' },
    { authorities: 'id.shop.example:8443', signedFor: 'id.shop.example:8443' },
    { authorities: 'id.shop.example:443', signedFor: 'id.shop.example' },
  ])('%o', async (signature) => {
    expect(await ask(signature)).toBe(AGENT_ORIGIN);
  });

  it.each<Asked>([
    { signedFor: 'evil.example' },
    { signedFor: 'a.gpd.example' },
    { signedFor: 'gpd.example:8443' },
    { signedFor: 'gpd.example:80' },
    { signedFor: 'gpd.example.' },
    { signedFor: 'evil.example', host: 'gpd.example' },
    { signedFor: 'gpd.example', host: 'internal:8080' },
    { signedFor: 'gpd.example', host: '' },
    { signedFor: 'gpd.example', host: 'gpd.example, evil.example' },
    { signedFor: 'gpd.example', host: 'x@gpd.example' },
  ])('do not include %o', async (signature) => {
    expect(await ask(signature)).toBeNull();
  });

  it.each(['@other.example/', ':x@other.example/', '.other.example/', '*', ''])(
    'are not what a target %j would make of the Host',
    async (target) => {
      expect(await verify({ ...signed({ host: 'other.example' }), host: HOST }, { target })).toBeNull();
      expect(await verify(signed(), { target })).toBeNull();
    },
  );

  it('do not come from X-Forwarded-Host', async () => {
    const forwarded = { 'x-forwarded-host': HOST, forwarded: `host=${HOST}` };
    expect(await verify({ ...signed(), host: 'internal:8080', ...forwarded })).toBeNull();
  });

  it('are those of this machine, with its port, without a base URL', () => {
    const names = publicNames(loadConfig({ environment: {} }), 'http://127.0.0.1:8080');
    expect(new Set(names)).toEqual(new Set(['127.0.0.1:8080', 'localhost:8080', '[::1]:8080']));
  });
});
