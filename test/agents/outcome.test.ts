import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { directoryUrl, importAgentKey } from '../../src/agents/directory.ts';
import { AGENT_REASONS, type AgentOutcome, type AgentReason, intentOf } from '../../src/agents/reasons.ts';
import { type BotAuthDeps, type BotAuthRequest, judgeSignatures } from '../../src/agents/verify.ts';
import { NOW } from '../support/make.ts';
import {
  AGENT_ORIGIN,
  createAgent,
  createDeps,
  createRequest,
  joinSignatures,
  NOW_SECONDS,
  quoted,
  type SignOptions,
  signedHeaders,
} from './support/agent.ts';

/** Contract-2 section 17 and draft-ietf-webbotauth-httpsig-protocol-01: who signed, what holds, and why not. */

const AGENT = createAgent();
const BROWSER = createAgent('https://browser.example');
const MEMBER = '"signature-agent";key="sig1"';

type Headers = Readonly<Record<string, string>>;

const deps = (over: Partial<BotAuthDeps> = {}): BotAuthDeps => createDeps([AGENT, BROWSER], over);
const judge = (headers: Headers, over: Partial<BotAuthRequest> = {}, world = deps()): Promise<AgentOutcome> =>
  judgeSignatures(world, createRequest(headers, over), NOW);
const sign = (options: SignOptions = {}, agent = AGENT): Headers => signedHeaders(agent, options);
const without = (name: string, headers = sign()): Headers =>
  Object.fromEntries(Object.entries(headers).filter(([other]) => other !== name));

const digestOf = (body: string, algorithm = 'sha256', name = 'sha-256'): string =>
  `${name}=:${createHash(algorithm).update(body).digest('base64')}:`;
const withDigest = (digest: string): Headers =>
  sign({ components: ['"@authority"', '"content-digest"', MEMBER], headers: { 'content-digest': digest } });

describe('a remote browser that vouches for the agent in it', () => {
  const header = `browser=${quoted(BROWSER.origin)}, agent=${quoted(AGENT.origin)}`;
  const member = (label: string): string => `"signature-agent";key="${label}"`;
  const inner = sign({
    label: 'agent',
    signatureAgent: header,
    components: ['"@authority"', member('agent')],
  });
  const components = ['"@authority"', member('agent'), member('browser')];
  const outer = sign({ label: 'browser', signatureAgent: header, components }, BROWSER);
  const only = (agent: typeof AGENT): BotAuthDeps => createDeps([agent]);

  it('each of the two signatures is judged alone', async () => {
    const both = joinSignatures(inner, outer);
    expect(await judge(both)).toMatchObject({ status: 'verified', agent: AGENT_ORIGIN });
    expect(await judge(both, {}, only(AGENT))).toMatchObject({ agent: AGENT_ORIGIN });
    expect(await judge(both, {}, only(BROWSER))).toMatchObject({ agent: BROWSER.origin });
    expect(await judge(outer)).toMatchObject({ status: 'verified', agent: BROWSER.origin });
  });

  it('names nobody whose own signature does not hold', async () => {
    const forged = { ...inner, signature: outer['signature']!.replace('browser=', 'agent=') };
    expect(await judge(joinSignatures(forged, outer))).toMatchObject({ agent: BROWSER.origin });
    expect(await judge(forged)).toMatchObject({ status: 'invalid', agent: null, named: AGENT_ORIGIN });
  });
});

describe('two key sets under one host', () => {
  const [alice, mallory] = ['alice', 'mallory'].map((name) => `https://shared.example/${name}/jwks.json`);
  const key = importAgentKey({ thumbprint: AGENT.thumbprint, x: AGENT.jwk.x });
  const findKey: BotAuthDeps['findKey'] = (url) => (url === alice ? key : 'key-set-unknown');
  const as = (url = ''): Promise<AgentOutcome> =>
    judge(sign({ signatureAgent: `sig1=${quoted(url)}` }), {}, deps({ findKey }));

  it('are two agents, each named by its URL without query and fragment', async () => {
    expect(await as(alice)).toMatchObject({ status: 'verified', agent: alice });
    expect(await as(`${alice}?v=2#now`)).toMatchObject({ status: 'verified', agent: alice });
    expect(await as(mallory)).toMatchObject({ status: 'unverified', reason: 'key-set-unknown', agent: null });
    expect(await as('https://shared.example')).toMatchObject({ status: 'unverified', agent: null });
    expect(directoryUrl('https://Shared.example:443/alice/jwks.json')).toBe(alice);
  });
});

describe('a covered Content-Digest', () => {
  it('is compared where the body is at hand, and a header elsewhere', async () => {
    const headers = withDigest(digestOf('body'));
    expect(await judge(headers, { body: Buffer.from('body') })).toMatchObject({ status: 'verified' });
    expect(await judge(headers)).toMatchObject({ status: 'verified' });
    const other = { status: 'invalid', reason: 'digest-mismatch' };
    expect(await judge(headers, { body: Buffer.from('other') })).toMatchObject(other);
    const two = `${digestOf('body')}, ${digestOf('other', 'sha512', 'sha-512')}`;
    expect(await judge(withDigest(two), { body: Buffer.from('body') })).toMatchObject(other);
    const unsigned = { ...sign(), 'content-digest': digestOf('other') };
    expect(await judge(unsigned, { body: Buffer.from('body') })).toMatchObject({ status: 'verified' });
  });
});

describe('a tag', () => {
  it('is one of GPD_WBA_TAGS, and says what a verified agent came for', async () => {
    const policy = { ...deps().policy, tags: ['web-bot-auth', 'agent-payer-auth', 'agent-browser-auth'] };
    const intents: (string | null)[] = [];
    for (const tag of policy.tags) {
      const found = await judge(sign({ params: { tag: quoted(tag) } }), {}, deps({ policy }));
      expect(found).toMatchObject({ status: 'verified', tag });
      intents.push(intentOf(found));
    }
    expect(intents).toEqual([null, 'pay', 'browse']);
    const unknown = await judge(
      sign({ params: { tag: '"agent-payer-auth"' } }, createAgent()),
      {},
      deps({ policy }),
    );
    expect(intentOf(unknown)).toBeNull();
  });
});

const params = (over: SignOptions['params']): Headers => sign({ params: over ?? {} });
const covering = (component: string, headers: Headers = {}): Headers =>
  sign({ components: ['"@authority"', component, MEMBER], headers });
const times = (created: number, expires: number): Headers =>
  params({ created: String(NOW_SECONDS + created), expires: String(NOW_SECONDS + expires) });
const agentHeader = (signatureAgent: string): Headers => sign({ signatureAgent });
const DAY = 86_400;

const CAUSES: Readonly<Record<AgentReason, () => Promise<AgentOutcome>>> = {
  'headers-too-long': () => judge({ ...sign(), signature: ' '.repeat(8192) }),
  'signature-input-missing': () => judge(without('signature-input')),
  'signature-input-malformed': () => judge({ ...sign(), 'signature-input': '(((' }),
  'signature-missing': () => judge(without('signature')),
  'signature-agent-missing': () => judge(without('signature-agent')),
  'signature-agent-malformed': () => judge({ ...sign(), 'signature-agent': '"' }),
  'signature-agent-no-member': () => judge(agentHeader(`other=${quoted(AGENT_ORIGIN)}`)),
  'signature-agent-not-covered': () => judge(sign({ components: ['"@authority"'] })),
  'signature-agent-parameters': () => judge(agentHeader(`sig1=${quoted(AGENT_ORIGIN)};type=directory`)),
  'signature-agent-no-url': () => judge(agentHeader('sig1="http://agent.example"')),
  'tag-not-accepted': () => judge(params({ tag: 'web-bot-auth' })),
  'algorithm-not-supported': () => judge(params({ alg: '"rsa-pss-sha512"' })),
  'component-not-supported': () => judge(covering('"@query-param";name="a"')),
  'too-many-components': () =>
    judge(
      sign({ components: ['"@authority"', ...Array.from({ length: 16 }, (_, i) => `"x-${i}"`), MEMBER] }),
    ),
  'keyid-missing': () => judge(params({ keyid: null })),
  'digest-not-supported': () => judge(withDigest('md5=:AAAA:'), { body: Buffer.from('body') }),
  'key-set-unknown': () => judge(sign({}, createAgent('https://stranger.example'))),
  'key-unknown': () => judge(sign({}, createAgent())),
  'key-not-in-force': () => judge(sign(), {}, deps({ findKey: () => 'key-not-in-force' })),
  'created-missing': () => judge(params({ created: null })),
  'created-in-future': () => judge(times(31, 300)),
  'expires-missing': () => judge(params({ expires: null })),
  'expires-before-created': () => judge(times(20, 10)),
  'valid-too-long': () => judge(times(-10, DAY)),
  expired: () => judge(times(-60, -1)),
  'host-not-covered': () => judge(sign({ components: [MEMBER] })),
  'wrong-host': () => judge(sign({ host: 'evil.example' })),
  'labels-differ': () => judge({ ...sign(), signature: `${sign()['signature']}, more=:AAAA:` }),
  'signature-malformed': () => judge({ ...sign(), signature: 'sig1="AAAA"' }),
  'component-missing': () => judge(without('x-a', covering('"x-a"', { 'x-a': '1' }))),
  'component-unreadable': () => judge(covering('"x-a"', { 'x-a': 'a'.repeat(2049) })),
  'component-repeated': () => judge(covering('"@authority"')),
  'empty-path': () => judge(emptyPath(), { target: '/' }),
  'signature-mismatch': () => judge({ ...sign(), signature: 'sig1=:AAAA:' }),
  'digest-mismatch': () => judge(withDigest(digestOf('a')), { body: Buffer.from('b') }),
  async replayed() {
    const world = deps();
    await judge(params({ nonce: '"n"' }), {}, world);
    return judge(params({ nonce: '"n"' }), {}, world);
  },
};

/** DuckDuckBot signs it so. */
const emptyPath = (): Headers => sign({ components: ['"@authority"', '"@path"', MEMBER], target: '' });

describe('a reason', () => {
  it.each(Object.keys(CAUSES) as AgentReason[])('%s has a cause of its own', async (reason) => {
    const [status] = AGENT_REASONS[reason];
    expect(await CAUSES[reason]()).toMatchObject({ reason, status, agent: null });
  });

  it('is missing where a signature verifies, and where there is none', async () => {
    expect(await judge(sign())).toMatchObject({ status: 'verified', reason: null });
    const other = sign({ params: { tag: '"other"' } });
    for (const headers of [{}, without('signature-agent', other)])
      expect(await judge(headers)).toMatchObject({ status: 'none', reason: null });
  });

  it('of a signature that does not hold comes before that of a stranger’s', async () => {
    const stranger = sign({ label: 'a' }, createAgent('https://stranger.example'));
    const expired = sign({ label: 'b', params: { expires: String(NOW_SECONDS - 1) } });
    expect(await judge(joinSignatures(stranger, expired))).toMatchObject({
      status: 'invalid',
      reason: 'expired',
    });
  });
});
