import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { countedName } from '../../src/agents/policy.ts';
import { UNSIGNED } from '../../src/agents/reasons.ts';
import { HOUR } from '../../src/lib/clock.ts';
import { AGENT_ORIGIN, createAgent } from '../agents/support/agent.ts';
import { checkAt, type Headers, signNow } from '../agents/support/door.ts';
import { tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { postJson } from '../support/http.ts';
import { started } from '../support/started.ts';
import { signIn, startConsole } from './support/console.ts';
import { change } from './support/data.ts';

/** The page about agents at the door, and the desk for a review of a refusal. */

const site = started(() => startConsole({ gpd: { settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } } }));
const ada = started(() => signIn(site.url, 'ada'));
const dora = started(() => signIn(site.url, 'dora'));
const olaf = started(() => signIn(site.url, 'olaf'));

const POLICY = JSON.stringify([{ agent: '*', path: '/checkout', action: 'require' }]);
async function refuse(): Promise<string> {
  const reply = await checkAt(site.url);
  expect(reply.status).toBe(401);
  return reply.headers['gpd-agent-case'] as string;
}

const signer = createAgent();
const agentSigns = () => signNow(signer);

const visit = (headers: Headers, path = '/') => checkAt(site.url, { 'x-forwarded-uri': path, ...headers });

function keyFile(): string {
  const file = join(tempDir('jwks'), 'agent.json');
  writeFileSync(file, JSON.stringify({ keys: [signer.jwk] }));
  return file;
}

async function policy(): Promise<readonly unknown[]> {
  const tenant = await site.gpd.json(['tenants', 'show', KID]);
  return (tenant as { settings: { 'agents.policy': unknown[] } }).settings['agents.policy'];
}

/** Files a review of the refusal that the agent meets now. */
async function fileReview(): Promise<string> {
  const { headers } = await visit(agentSigns(), '/shop/1');
  const body = { case: headers['gpd-agent-case'], statement: 'We buy here.' };
  return ((await postJson(site.url, '/v1/agents/review', body)).json() as { contestId: string }).contestId;
}

async function rule(contestId: string, fields: Record<string, string>, reviewer = ada) {
  const path = `/console/contests/${contestId}`;
  const version = /name="version" value="(\d+)"/.exec((await reviewer.get(path)).text)?.[1] ?? '';
  const text = 'The agent buys here, and its signature holds.';
  return reviewer.act(`${path}/resolve`, { text, version, ...fields });
}

describe('the page about agents', () => {
  it('says what to do while nobody came', async () => {
    const { text } = await ada.get('/console/agents');
    expect(text).toContain('No requests yet.');
    expect(text).toContain('gpd agents add URL');
    // There is no policy that could be dry, and no agent above the form.
    const { text: empty } = await dora.get('/console/agents');
    expect(empty).toContain('It has no rows');
    expect(empty).toContain('/console/agents/row');
    expect(empty).not.toMatch(/named above|dry-run|policy dry/);
  });

  it('shows what a card says, that it is not proven, and why it could not be read', async () => {
    const url = 'https://127.0.0.1:1/bot';
    const added = await site.gpd.cli([
      'agents',
      'add',
      'https://carded.example',
      '--jwks',
      keyFile(),
      '--card',
      url,
    ]);
    expect(added).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('address is not public') as string,
    });
    expect(await site.gpd.cli(['agents', 'add', AGENT_ORIGIN, '--card', `${url}#x`])).toMatchObject({
      code: 2,
    });
    const says = {
      name: '<b>Example Bot</b>',
      page: null,
      contacts: ['mailto:bots@agent.example'],
      trigger: 'crawler',
      purpose: null,
    };
    expect((await ada.get('/console/agents')).text).toContain(`${url}: the address is not public`);
    await change(site, (tx) =>
      tx('agent_directories')
        .where('url', 'like', 'https://carded.example/%')
        .update({ card: JSON.stringify({ url, says, failure: null }) }),
    );
    const { text } = await ada.get('/console/agents');
    for (const part of [
      '&lt;b&gt;Example Bot',
      'mailto:bots@agent.example',
      'scans without a user',
      'Nobody signed a card',
    ])
      expect(text).toContain(part);
    expect(await site.gpd.json(['agents', 'list'])).toContainEqual(
      expect.objectContaining({ agentId: 'https://carded.example', card: { url, says, failure: null } }),
    );
  });

  it('shows who came, the answer by which row, the policy and the key sets', async () => {
    await site.gpd.cli(['agents', 'add', 'https://127.0.0.1:1']);
    await site.gpd.json(['agents', 'add', AGENT_ORIGIN, '--jwks', keyFile()]);
    await site.gpd.json(['tenants', 'set', KID, `agents.policy=${POLICY}`]);
    const decided = { action: 'require', row: 0, path: '/checkout', rate: null } as const;
    const agent = 'https://agent.example';
    const verified = { ...UNSIGNED, status: 'verified', agent, named: agent } as const;
    const counts = [
      [countedName(verified, decided, { isRefused: false, isDry: false }), 1234],
      [countedName(UNSIGNED, decided, { isRefused: true, isDry: false }), 7],
      [
        countedName({ ...verified, status: 'invalid', agent: null }, decided, {
          isRefused: true,
          isDry: true,
        }),
        3,
      ],
    ] as const;
    const hour = Math.floor(Date.now() / HOUR) * HOUR;
    await change(site, async (tx) => {
      for (const [name, n] of counts) await tx('tallies').insert({ kid: KID, kind: 'agent', hour, name, n });
    });
    const { text } = await ada.get('/console/agents');
    for (const part of [agent, '1,234', 'let through', 'refused', 'would be refused', 'under 50'])
      expect(text).toContain(part);
    expect(text).toContain('claims to be https://agent.example');
    expect(text).toContain('https://127.0.0.1:1');
    expect((await olaf.get('/console/agents')).text).not.toContain('1,234');
  });

  it('finds a refusal by its number, and another tenant does not', async () => {
    const policy = JSON.stringify([{ agent: '*', path: '/', action: 'require' }]);
    await site.gpd.json(['tenants', 'set', KID, `agents.policy=${policy}`]);
    await vi.waitFor(refuse, SEEN_WITHIN);
    const number = await refuse();
    const shown = await ada.get(`/console/agents?case=${number}`);
    expect(shown.status).toBe(200);
    expect(shown.text).toMatch(/nobody proven · not signed · require · row 1 · <code>\/<\/code>/);
    expect((await olaf.get(`/console/agents?case=${number}`)).status).toBe(404);
    expect((await ada.get('/console/agents?case=%3Cb%3E')).status).toBe(404);
  });

  it('switches the policy to dry and back, for a dpo or operator, with an audit row', async () => {
    expect((await ada.act('/console/agents/dry-run', { dry: 'true' })).status).toBe(403);
    expect((await ada.get('/console/agents')).text).not.toContain('/console/agents/dry-run');
    expect((await dora.post('/console/agents/dry-run', { dry: 'true' })).status).toBe(403);
    await vi.waitFor(refuse, SEEN_WITHIN);
    expect((await dora.act('/console/agents/dry-run', { dry: 'true' })).status).toBe(303);
    // A form that does not say which changes nothing.
    expect((await dora.act('/console/agents/dry-run', {})).status).toBe(400);
    const { text } = await dora.get('/console/agents');
    expect(text).toContain('The policy is dry: it refuses nobody');
    expect(text).toContain('Put the policy in force');
    const check = () => checkAt(site.url);
    await vi.waitFor(async () => expect((await check()).status).toBe(204), SEEN_WITHIN);
    const rows = JSON.stringify(await site.gpd.json(['audit', KID, '--action', 'tenant.set']));
    expect(rows).toMatch(/"dpo".*agents\.dryRun/s);
    await dora.act('/console/agents/dry-run', { dry: 'false' });
    await vi.waitFor(refuse, SEEN_WITHIN);
  });

  it('writes a row for one agent at the top, for a dpo or operator, with an audit row', async () => {
    const row = { agent: 'https://Agent.example/', path: '/', action: 'deny' };
    expect((await ada.act('/console/agents/row', row)).status).toBe(403);
    expect((await ada.get('/console/agents')).text).not.toContain('/console/agents/row');
    expect((await dora.post('/console/agents/row', row)).status).toBe(403);
    expect((await dora.act('/console/agents/row', row)).status).toBe(303);
    expect((await dora.get('/console/agents')).text).toContain('the agent is refused');
    const [, ...otherRows] = await policy();
    expect((await policy())[0]).toEqual({ agent: 'https://agent.example', path: '/', action: 'deny' });
    await vi.waitFor(async () => expect((await visit(agentSigns())).status).toBe(403), SEEN_WITHIN);
    await dora.act('/console/agents/row', { ...row, action: 'allow' });
    expect(await policy()).toEqual([
      { ...row, agent: 'https://agent.example', action: 'allow' },
      ...otherRows,
    ]);
    await vi.waitFor(async () => expect((await visit(agentSigns())).status).toBe(204), SEEN_WITHIN);
    await dora.act('/console/agents/row', { ...row, action: 'none' });
    expect(await policy()).toEqual(otherRows);
    const rows = JSON.stringify(await site.gpd.json(['audit', KID, '--action', 'tenant.set']));
    expect(rows).toMatch(/"dpo".*https:\/\/agent\.example/s);
  });

  it('refuses a row that is none, and changes nothing', async () => {
    const before = await policy();
    const good = { agent: 'https://agent.example', path: '/', action: 'allow' };
    for (const fault of [
      { agent: '*' },
      { agent: '' },
      { agent: 'http://x' },
      { path: 'x' },
      { action: 'rate' },
    ])
      expect((await dora.act('/console/agents/row', { ...good, ...fault })).status).toBe(400);
    expect(await policy()).toEqual(before);
  });

  it('a review of one is a case like any other, which says its kind', async () => {
    const filed = await postJson(site.url, '/v1/agents/review', {
      case: await refuse(),
      statement: 'We buy here.',
    });
    const { contestId } = filed.json() as { contestId: string };
    const { text } = await ada.get(`/console/contests/${contestId}`);
    expect(text).toContain('Agent refused');
    expect(text).toContain('We buy here.');
    expect((await ada.get('/console/queue')).text).toContain(contestId);
    expect((await ada.get('/console/overview')).status).toBe(200);
  });

  it('offers to let the agent of a case through, and does so with the ruling alone', async () => {
    await dora.act('/console/agents/row', { agent: AGENT_ORIGIN, path: '/shop', action: 'deny' });
    await vi.waitFor(
      async () => expect((await visit(agentSigns(), '/shop/1')).status).toBe(403),
      SEEN_WITHIN,
    );
    const upheld = await fileReview();
    const { stdout } = await site.gpd.cli(['contests', 'show', upheld]);
    expect(stdout).toContain('The site’s policy for agents refused this request.');
    expect(stdout).not.toContain('would have');
    const page = await ada.get(`/console/contests/${upheld}`);
    expect(page.text).toContain(`also let ${AGENT_ORIGIN} through at /shop from now on`);
    expect(page.text).not.toMatch(/id="rule" checked/);
    const before = await policy();
    expect((await rule(upheld, { outcome: 'overturned', text: 'short', rule: 'allow' })).text).toMatch(
      /id="rule" checked/,
    );
    expect((await rule(upheld, { outcome: 'upheld', rule: 'allow' })).status).toBe(303);
    const overturned = await fileReview();
    expect((await rule(overturned, { outcome: 'overturned' })).status).toBe(303);
    expect(await policy()).toEqual(before);
    const allowed = await fileReview();
    expect((await rule(allowed, { outcome: 'overturned', rule: 'allow' })).status).toBe(303);
    expect((await policy())[0]).toEqual({ agent: AGENT_ORIGIN, path: '/shop', action: 'allow' });
    await vi.waitFor(
      async () => expect((await visit(agentSigns(), '/shop/1')).status).toBe(204),
      SEEN_WITHIN,
    );
    const rows = JSON.stringify(await site.gpd.json(['audit', KID, '--action', 'tenant.set']));
    expect(rows).toMatch(/"reviewer".*\/shop/s);
  });

  it('with two reviewers, the ruling that resolves the case decides about the row', async () => {
    await site.gpd.json(['tenants', 'set', KID, 'review.fourEyes=true']);
    await dora.act('/console/agents/row', { agent: AGENT_ORIGIN, path: '/shop', action: 'deny' });
    await vi.waitFor(
      async () => expect((await visit(agentSigns(), '/shop/1')).status).toBe(403),
      SEEN_WITHIN,
    );
    const before = await policy();
    const contestId = await fileReview();
    expect((await ada.get(`/console/contests/${contestId}`)).text).not.toContain('id="rule"');
    expect((await rule(contestId, { outcome: 'overturned', rule: 'allow' })).status).toBe(303);
    expect(await policy()).toEqual(before);
    expect((await dora.get(`/console/contests/${contestId}`)).text).toContain('id="rule"');
    const reason = 'I have read it too, and the agent buys here.';
    await rule(contestId, { outcome: 'overturned', rule: 'allow', text: reason }, dora);
    expect((await policy())[0]).toEqual({ agent: AGENT_ORIGIN, path: '/shop', action: 'allow' });
    await site.gpd.json(['tenants', 'set', KID, 'review.fourEyes=false']);
  });

  it('writes no row if the policy is full: the case stays open', async () => {
    const full = [
      { agent: '*', path: '/full', action: 'require' },
      ...Array.from({ length: 199 }, (_, row) => ({ agent: '*', path: `/full/${row}`, action: 'allow' })),
    ];
    const denied = [
      { agent: AGENT_ORIGIN, path: '/shop', action: 'deny', status: 'verified' },
      ...full.slice(1),
    ];
    await site.gpd.json(['tenants', 'set', KID, `agents.policy=${JSON.stringify(denied)}`]);
    await vi.waitFor(
      async () => expect((await visit(agentSigns(), '/shop/1')).status).toBe(403),
      SEEN_WITHIN,
    );
    const contestId = await fileReview();
    await site.gpd.json(['tenants', 'set', KID, `agents.policy=${JSON.stringify(full)}`]);
    const refused = await rule(contestId, { outcome: 'overturned', rule: 'allow' });
    expect(refused.status).toBe(400);
    expect((await ada.get(`/console/contests/${contestId}`)).text).toContain('Resolve the case');
    expect(await policy()).toEqual(full);
  });
});
