import { describe, expect, it } from 'vitest';
import { importAgentKey, readJwks } from '../../src/agents/directory.ts';
import { type BotAuthDeps, type BotAuthRequest, verifyBotAuth } from '../../src/agents/verify.ts';
import { NOW } from '../support/make.ts';
import {
  AGENT_ORIGIN,
  createAgent,
  createDeps,
  createRequest,
  HOST,
  NOW_SECONDS,
  quoted,
  rfcTestAgent,
  type SignOptions,
  signedHeaders,
  TARGET,
} from './support/agent.ts';

/** Production makes these demands of a signature; each test moves one demand just past its limit. */

const AGENT = createAgent();

function verdict(options: SignOptions = {}, over: Partial<BotAuthRequest> = {}): Promise<string | null> {
  return verifyBotAuth(createDeps([AGENT]), createRequest(signedHeaders(AGENT, options), over), NOW);
}

const params = (over: SignOptions['params']): SignOptions => ({ params: over ?? {} });
const times = (created: number, expires: number): SignOptions =>
  params({ created: String(NOW_SECONDS + created), expires: String(NOW_SECONDS + expires) });

describe('a signature in good order', () => {
  it('verifies as the origin of its directory', async () => {
    expect(await verdict()).toBe(AGENT_ORIGIN);
  });

  it('is not verified without any one of its three headers', async () => {
    for (const name of ['signature', 'signature-input', 'signature-agent']) {
      const { [name]: _left, ...rest } = signedHeaders(AGENT);
      expect(await verifyBotAuth(createDeps([AGENT]), createRequest(rest), NOW)).toBeNull();
    }
    expect(await verifyBotAuth(createDeps([AGENT]), createRequest({ host: HOST }), NOW)).toBeNull();
  });

  it('is not verified by an agent whose key is not known', async () => {
    const stranger = signedHeaders(createAgent());
    expect(await verifyBotAuth(createDeps([AGENT]), createRequest(stranger), NOW)).toBeNull();
  });

  it("does not verify by another directory's key", async () => {
    const other = createAgent('https://other.example');
    const claims = signedHeaders({ ...other, origin: AGENT.origin });
    expect(await verifyBotAuth(createDeps([AGENT, other]), createRequest(claims), NOW)).toBeNull();
  });
});

describe('its time', () => {
  const DAY = 86_400;
  it.each([
    ['valid for exactly 24 hours', -10, DAY - 10, true],
    ['valid for 24 hours and a second', -10, DAY - 9, false],
    ['valid for 55 years', -10, 55 * 365 * DAY, false],
    ['created 30 s from now', 30, 300, true],
    ['created 31 s from now', 31, 300, false],
    ['expiring this second', -60, 0, true],
    ['expired a second ago', -60, -1, false],
    ['expired while our own clock skew would still allow it', -60, -29, false],
    ['created as it expires', 0, 0, true],
    ['created after it expires', 20, 10, false],
    ['valid from a day ago until now', -DAY, 0, true],
  ])('%s', async (_name, created, expires, good) => {
    expect(await verdict(times(created, expires))).toBe(good ? AGENT_ORIGIN : null);
  });

  it.each([
    ['created', 'a decimal', '1763630000.5'],
    ['expires', 'a string', quoted(String(NOW_SECONDS + 60))],
    ['created', 'a date of RFC 9651', `@${NOW_SECONDS}`],
    ['expires', 'a boolean', '?1'],
    ['created', 'a negative number', '-1'],
    ['expires', 'more digits than an integer has', '9999999999999999'],
  ])('%s as %s is refused', async (name, _form, value) => {
    expect(await verdict(params({ [name]: value }))).toBeNull();
  });
});

describe('its parameters', () => {
  it.each(['created', 'expires', 'keyid', 'tag'])('without %s it is refused', async (name) => {
    expect(await verdict(params({ [name]: null }))).toBeNull();
  });

  it.each([
    ['another tag', { tag: '"web-bot"' }],
    ['a tag in capitals', { tag: '"Web-Bot-Auth"' }],
    ['a tag that is a token', { tag: 'web-bot-auth' }],
    ['another algorithm', { alg: '"rsa-pss-sha512"' }],
    ['a keyed hash as the algorithm', { alg: '"hmac-sha256"' }],
    ['the algorithm in capitals', { alg: '"ED25519"' }],
    ['no thumbprint as keyid', { keyid: '"key-1"' }],
    ['an empty keyid', { keyid: '""' }],
    ['a keyid in base64 and not base64url', { keyid: quoted(`${'A'.repeat(42)}+`) }],
    ['a nonce that is a number', { nonce: '1' }],
  ])('%s is refused', async (_name, over) => {
    expect(await verdict(params(over))).toBeNull();
  });

  it('a named algorithm, a nonce and parameters that nobody knows are fine', async () => {
    const over = { alg: '"ed25519"', nonce: '"abc"', 'x-more': '1', flag: '?0' };
    expect(await verdict(params(over))).toBe(AGENT_ORIGIN);
  });

  it("the RFC's printed key does not verify by a directory that lists it", async () => {
    const printed = rfcTestAgent();
    const ask = async (refused?: ReadonlySet<string>): Promise<string | null> => {
      const keys = (await readJwks({ keys: [printed.jwk] }, refused)) ?? [];
      const findKey: BotAuthDeps['findKey'] = (_directory, thumbprint) => {
        const key = keys.find((one) => one.thumbprint === thumbprint);
        return key ? importAgentKey(key) : null;
      };
      return verifyBotAuth(createDeps([], { findKey }), createRequest(signedHeaders(printed)), NOW);
    };
    expect(await ask(new Set())).toBe(AGENT_ORIGIN);
    expect(await ask()).toBeNull();
  });
});

describe('what it covers', () => {
  const AGENT_MEMBER = '"signature-agent";key="sig1"';
  it.each([
    ['nothing', [], false],
    ['only the method', ['"@method"'], false],
    ['the authority without its directory', ['"@authority"'], false],
    ['the directory without a name of ours', [AGENT_MEMBER], false],
    ['the path instead of the authority', ['"@path"', AGENT_MEMBER], false],
    ['the target URI', ['"@target-uri"', AGENT_MEMBER], true],
    ['method, path and query too', ['"@authority"', '"@method"', '"@path"', '"@query"', AGENT_MEMBER], true],
    ['the scheme too', ['"@authority"', '"@scheme"', AGENT_MEMBER], true],
    ['the request target too', ['"@authority"', '"@request-target"', AGENT_MEMBER], true],
    ['the directory twice', ['"@authority"', AGENT_MEMBER, AGENT_MEMBER], false],
    ['the authority twice', ['"@authority"', '"@authority"', AGENT_MEMBER], false],
    ['a header that is not there', ['"@authority"', '"x-none"', AGENT_MEMBER], false],
    ['a parameter of the related request', ['"@authority";req', AGENT_MEMBER], false],
    ['the status of a response', ['"@authority"', '"@status"', AGENT_MEMBER], false],
    ['a member under an unknown key', ['"@authority"', '"signature-agent";key="sig2"'], false],
  ])('%s', async (_name, components, good) => {
    expect(await verdict({ components, target: `${TARGET}?a=1` }, { target: `${TARGET}?a=1` })).toBe(
      good ? AGENT_ORIGIN : null,
    );
  });

  it.each([
    ['method', ['"@authority"', '"@method"', AGENT_MEMBER], { method: 'PUT' }],
    ['path', ['"@authority"', '"@path"', AGENT_MEMBER], { target: '/_fp/i/v2' }],
    ['query', ['"@authority"', '"@query"', AGENT_MEMBER], { target: `${TARGET}?x=1` }],
    ['scheme', ['"@authority"', '"@scheme"', AGENT_MEMBER], { https: false }],
    ['target URI', ['"@target-uri"', AGENT_MEMBER], { target: `${TARGET}?x=1` }],
  ])('another %s than the one covered is refused', async (_name, components, over) => {
    expect(await verdict({ components })).toBe(AGENT_ORIGIN);
    expect(await verdict({ components }, over)).toBeNull();
  });

  it('a covered header counts with its value, other headers do not', async () => {
    const components = ['"@authority"', '"x-run"', '"signature-agent";key="sig1"'];
    const headers = signedHeaders(AGENT, { components, headers: { 'x-run': 'a  b' } });
    const ask = (over: Record<string, string>): Promise<string | null> =>
      verifyBotAuth(createDeps([AGENT]), createRequest({ ...headers, ...over }), NOW);
    expect(await ask({ 'x-other': 'anything' })).toBe(AGENT_ORIGIN);
    expect(await ask({ 'x-run': ' a  b\t' })).toBe(AGENT_ORIGIN);
    expect(await ask({ 'x-run': 'a b' })).toBeNull();
    expect(await ask({ 'x-run': 'a  b\n"@authority": evil.example' })).toBeNull();
    expect(await ask({ 'x-run': 'ä' })).toBeNull();
  });

  it('an odd byte in a header that is not covered costs the agent nothing', async () => {
    const odd = { 'x-name': 'Grüße', cookie: 'a=\u00ff', 'user-agent': 'Bot/1 – x', 'signature-note': 'ü' };
    const headers = { ...signedHeaders(AGENT), ...odd };
    expect(await verifyBotAuth(createDeps([AGENT]), createRequest(headers), NOW)).toBe(AGENT_ORIGIN);
  });
});
