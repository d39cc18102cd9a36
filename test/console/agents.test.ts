import { describe, expect, it, vi } from 'vitest';
import { countedName } from '../../src/agents/policy.ts';
import { UNSIGNED } from '../../src/agents/reasons.ts';
import { HOUR } from '../../src/lib/clock.ts';
import { KID } from '../support/constants.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { ask, postJson } from '../support/http.ts';
import { started } from '../support/started.ts';
import { signIn, startConsole } from './support/console.ts';
import { change } from './support/data.ts';

/** The page about agents at the door, and the desk for a review of a refusal. */

const site = started(() => startConsole());
const ada = started(() => signIn(site.url, 'ada'));
const dora = started(() => signIn(site.url, 'dora'));
const olaf = started(() => signIn(site.url, 'olaf'));

const POLICY = JSON.stringify([{ agent: '*', path: '/checkout', action: 'require' }]);
const PROXIED = { host: 'shop.example' };

async function refuse(): Promise<string> {
  const reply = await ask(site.url, '/v1/agents/check', { headers: PROXIED });
  expect(reply.status).toBe(401);
  return reply.headers['gpd-agent-case'] as string;
}

describe('the page about agents', () => {
  it('says what to do while nobody came', async () => {
    const { text } = await ada.get('/console/agents');
    expect(text).toContain('No requests yet.');
    expect(text).toContain('gpd agents add URL');
  });

  it('shows who came, the answer by which row, the policy and the key sets', async () => {
    await site.gpd.cli(['agents', 'add', 'https://127.0.0.1:1']);
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
    const { text } = await dora.get('/console/agents');
    expect(text).toContain('The policy is dry: it refuses nobody');
    expect(text).toContain('Put the policy in force');
    const check = () => ask(site.url, '/v1/agents/check', { headers: PROXIED });
    await vi.waitFor(async () => expect((await check()).status).toBe(204), SEEN_WITHIN);
    const rows = JSON.stringify(await site.gpd.json(['audit', KID, '--action', 'tenant.set']));
    expect(rows).toMatch(/"dpo"[^}]*[^]*agents\.dryRun/);
    await dora.act('/console/agents/dry-run', { dry: 'false' });
    await vi.waitFor(refuse, SEEN_WITHIN);
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
});
