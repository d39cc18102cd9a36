import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { addApiKey } from '../support/api-key.ts';
import { tempDir } from '../support/command.ts';
import { ORIGIN } from '../support/constants.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { postJson, type Reply } from '../support/http.ts';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import matrix from '../vectors/wba-matrix.json' with { type: 'json' };
import {
  AGENT_ORIGIN,
  type Agent,
  createAgent,
  joinSignatures,
  quoted,
  type SignOptions,
} from './support/agent.ts';
import { checkAt, type Headers, signNow } from './support/door.ts';

/**
 * The forms of the 50 signed requests, and of several agents in one, at both routes of the door. Production refuses the
 * matrix as it is (a published key, valid for decades), so each form that is good is signed again, by another key for a minute.
 */

const gpd = started(() => startGpd({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } }));
const agent = createAgent();
let secret = '';

const signed = (options: SignOptions = {}, by = agent): Headers => signNow(by, options);
const check = (headers: Headers, target = '/'): Promise<Reply> =>
  checkAt(gpd.url, { 'x-forwarded-uri': target, ...headers });
const verify = async (url: string, headers: object): Promise<unknown> => {
  const body = { method: 'GET', url, headers };
  return (await postJson(gpd.url, '/v1/agents/verify', body, { authorization: `Bearer ${secret}` })).json();
};
const found = ({ status, headers }: Reply) => ({
  status,
  ...Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('gpd-agent'))),
});

async function add(url: string, { jwk }: Agent): Promise<void> {
  const file = join(tempDir('jwks'), 'set.json');
  writeFileSync(file, JSON.stringify({ keys: [jwk] }));
  await gpd.json(['agents', 'add', url, '--jwks', file]);
}

beforeAll(async () => {
  await add(AGENT_ORIGIN, agent);
  secret = await addApiKey(gpd, 'secret');
  await vi.waitFor(
    async () => expect((await check(signed())).headers['gpd-agent-status']).toBe('verified'),
    SEEN_WITHIN,
  );
});

interface Case {
  readonly name: string;
  readonly expect: string;
  readonly url?: string;
  readonly agent?: string;
  readonly input?: string;
  readonly signature?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

const cases: readonly Case[] = matrix.cases;
const isGood = (testCase: Case): boolean =>
  testCase.expect === 'accept' && testCase.name !== 'ok-query-param';

/** The target of a case and its headers as a client sends them. */
function requestOf({ url = matrix.common.url, headers = {} }: Case) {
  const [, target = ''] = /^https:\/\/[^/?]+(.*)$/.exec(url) ?? [];
  const fields = Object.entries(headers).map(([name, value]) => [
    name.toLowerCase(),
    [value]
      .flat()
      .map((one) => one.trim())
      .join(', '),
  ]);
  return {
    target: target.startsWith('/') ? target : `/${target}`,
    fields: Object.fromEntries(fields) as Headers,
  };
}

/** Signs what a case covers, under the label and the form of its agent. */
function again(testCase: Case): Headers {
  const { input, agent: named } = { ...matrix.common, ...testCase };
  const [, label = '', covered = ''] = /(\w+)=\(([^)]*"signature-agent"[^)]*)\)/.exec(input) ?? [];
  const components = covered.match(/"[^"]+"(?:;key="[^"]+")?/g) ?? [];
  const signatureAgent = named.replace(matrix.common.agent.slice('sig1="'.length, -1), AGENT_ORIGIN);
  const { target, fields: headers } = requestOf(testCase);
  return signed({ label, components, signatureAgent, target, headers });
}

describe('wba-matrix at the door', () => {
  it.each(cases.filter(isGood).map((one) => [one.name, one] as const))(
    '%s is verified',
    async (_name, one) => {
      const { target } = requestOf(one);
      const headers = again(one);
      expect(found(await check(headers, target))).toEqual({
        status: 204,
        'gpd-agent-status': 'verified',
        'gpd-agent': AGENT_ORIGIN,
      });
      expect(await verify(`${ORIGIN}${target}`, headers)).toMatchObject({
        status: 'verified',
        agent: AGENT_ORIGIN,
        reason: null,
      });
    },
  );

  it('verifies none of them as they were signed, and says why to the backend', async () => {
    for (const one of cases) {
      const { agent: named, input, signature, url } = { ...matrix.common, ...one };
      const headers = { 'signature-agent': named, 'signature-input': input, signature, ...one.headers };
      const answer = (await verify(url, headers)) as { readonly status: string };
      expect(answer, one.name).toMatchObject({
        agent: null,
        status: expect.stringMatching(/^(?:invalid|unverified|none)$/) as string,
        reason: answer.status === 'none' ? null : (expect.stringMatching(/^[a-z]/) as string),
      });
    }
  });
});

describe('who signed, where several are named', () => {
  const verified = (by: string) => ({ status: 204, 'gpd-agent-status': 'verified', 'gpd-agent': by });
  const verifyAt = (headers: Headers) => verify(`${ORIGIN}/`, headers);

  it('two URLs under one host are two agents, at both routes', async () => {
    const names = ['alice', 'mallory'].map((name) => `https://shared.example/${name}/jwks.json`);
    const [alice = '', mallory = ''] = names;
    const [hers, his] = [createAgent(alice), createAgent(mallory)];
    const as = (url: string, by: Agent) => signed({ signatureAgent: `sig1=${quoted(url)}` }, by);
    await add(alice, hers);
    await add(mallory, his);
    await vi.waitFor(
      async () => expect(found(await check(as(mallory, his)))).toEqual(verified(mallory)),
      SEEN_WITHIN,
    );
    expect(found(await check(as(`${alice}?v=2`, hers)))).toEqual(verified(alice));
    expect(await verifyAt(as(alice, hers))).toMatchObject({ status: 'verified', agent: alice, reason: null });
    // The key of one proves nothing about the other, nor about their host.
    for (const url of [alice, 'https://shared.example']) {
      const headers = as(url, his);
      expect(found(await check(headers))).toEqual({ status: 204, 'gpd-agent-status': 'unverified' });
      expect(await verifyAt(headers)).toMatchObject({ status: 'unverified', agent: null });
    }
  });

  it('a signature covers the member of another agent, and each is judged alone', async () => {
    const browser = createAgent('https://browser.example');
    await add(browser.origin, browser);
    const signatureAgent = `sig1=${quoted(AGENT_ORIGIN)}, outer=${quoted(browser.origin)}`;
    const components = ['"@authority"', '"signature-agent";key="outer"', '"signature-agent";key="sig1"'];
    const inner = signed({ signatureAgent });
    const outer = (): Headers => signed({ label: 'outer', signatureAgent, components }, browser);
    await vi.waitFor(
      async () => expect(found(await check(outer()))).toEqual(verified(browser.origin)),
      SEEN_WITHIN,
    );
    expect(found(await check(inner))).toEqual(verified(AGENT_ORIGIN));
    expect(await verifyAt(joinSignatures(inner, outer()))).toMatchObject({
      status: 'verified',
      agent: AGENT_ORIGIN,
    });
    const forged = { ...inner, signature: String(outer()['signature']).replace('outer=', 'sig1=') };
    expect(found(await check(forged))).toEqual({ status: 204, 'gpd-agent-status': 'invalid' });
    expect(found(await check(joinSignatures(forged, outer())))).toEqual(verified(browser.origin));
  });
});
