import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { REASONS } from '../../../src/schema/consent.ts';
import { startRights } from '../../rights/support/rights.ts';
import { cleanEnvironment, PROGRAM } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';

/** `gpd mcp`, driven by the protocol's official client as a coding agent would. */

interface Answered {
  readonly isError?: boolean;
  readonly content: readonly { readonly text: string }[];
}

let rights: Awaited<ReturnType<typeof startRights>>;
let client: Client;

beforeAll(async () => {
  rights = await startRights();
  client = new Client({ name: 'test', version: '1' });
  const env = cleanEnvironment({ GPD_DATA_DIR: rights.gpd.dataDir }) as Record<string, string>;
  await client.connect(
    new StdioClientTransport({ command: PROGRAM, args: ['mcp', '--tenant', KID], env, stderr: 'inherit' }),
  );
});
afterAll(async () => {
  await client.close();
  await rights.stop();
});

async function ask(name: string, input: Record<string, unknown> = {}) {
  const { isError = false, content } = (await client.callTool({ name, arguments: input })) as Answered;
  const text = content[0]?.text ?? '';
  return { isError, text, value: JSON.parse(text) as Record<string, unknown> };
}

it('lists tools that say that they only read', async () => {
  const { tools } = await client.listTools();
  expect(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint])).toEqual([
    ['why_was_this_person_asked', true],
    ['why_did_this_verdict_fall', true],
    ['what_is_overdue', true],
    ['what_does_doctor_say', true],
    ['which_rule_is_overturned_most', true],
  ]);
});

it('says why a person is asked, and what to do, from what is recorded now', async () => {
  const person = { principalId: 'alice@shop.example', purpose: 'device-identification' };
  expect((await ask('why_was_this_person_asked', person)).value).toMatchObject({
    allowed: false,
    reason: 'never-asked',
    next: expect.stringContaining('join the browser') as string,
  });
  await rights.gpd.json(['consent', 'purposes', 'set', KID, 'newsletter', '--title', 'Our newsletter']);
  await rights.gpd.json(['consent', 'grant', KID, person.principalId, 'newsletter']);
  const granted = await ask('why_was_this_person_asked', { ...person, purpose: 'newsletter' });
  expect(granted.value).toMatchObject({ allowed: true, reason: 'granted' });
  expect(REASONS).toContain(granted.value['reason']);
});

it('explains a verdict without an id of a person or a signal', async () => {
  const visit = await rights.visit({ bot: true });
  const { text, value } = await ask('why_did_this_verdict_fall', { requestId: visit.requestId });
  expect(value).toMatchObject({ class: 'undeclared_automation', wasOverturned: false });
  expect((value['rules'] as readonly { text: string }[])[0]?.text).toMatch(/./);
  expect(text).not.toMatch(/HeadlessChrome|Mozilla|visitorId/);
  expect(text).not.toContain(visit.visitorId);
});

it('lists what is overdue, and which rule a person overturned, without what the person wrote', async () => {
  const visit = await rights.visit({ bot: true, device: 'b'.repeat(32) });
  const filed = await rights.me(visit, 'contest', {
    body: { statement: 'I am Maria Sample, a person.', email: 'maria@sample.example' },
  });
  const { contestId } = filed.json() as { contestId: string };
  const overdue = await ask('what_is_overdue');
  expect(overdue.value).toMatchObject({ objections: [{ contestId, overdue: false }], more: false });
  expect(overdue.text).not.toMatch(/Maria|sample\.example/);
  const reason = 'A colleague of ours spoke with the visitor on the phone.';
  await rights.gpd.json([
    'contests',
    'resolve',
    contestId,
    '--outcome',
    'overturned',
    '--reason',
    reason,
    '--yes',
  ]);
  const { value } = await ask('which_rule_is_overturned_most');
  expect((value['rules'] as readonly object[])[0]).toMatchObject({ overturned: 1, of: 1 });
});

it('says what doctor says', async () => {
  const { value } = await ask('what_does_doctor_say');
  expect(value['findings']).toEqual(expect.arrayContaining([expect.objectContaining({ status: 'warn' })]));
});

it('refuses what does not exist with a sentence, and bad input by its field', async () => {
  const unknown = await ask('why_did_this_verdict_fall', { requestId: 'req_none' });
  expect(unknown).toMatchObject({
    isError: true,
    value: { error: expect.stringMatching(/^no decision with that id/) as string },
  });
  const bad = (await client.callTool({
    name: 'why_was_this_person_asked',
    arguments: { principalId: 'alice' },
  })) as Answered;
  expect(bad.isError).toBe(true);
  expect(bad.content[0]?.text).toContain('purpose');
});

it('notes each question in the audit log by a reference alone', async () => {
  const rows = await rights.gpd.json<{ entries?: unknown }>(['audit', KID, '--action', 'mcp.asked']);
  const text = JSON.stringify(rows);
  expect(text).toContain('why_did_this_verdict_fall');
  expect(text).not.toMatch(/alice|req_/);
});
