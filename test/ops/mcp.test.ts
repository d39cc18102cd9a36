import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bearer } from '../consent/app/support/api.ts';
import { apiKey, type Rights, startRights } from '../rights/support/rights.ts';
import { addApiKey } from '../support/api-key.ts';
import { KID, OTHER } from '../support/constants.ts';
import { expectError } from '../support/expect.ts';
import { ask, postJson } from '../support/http.ts';
import { startGpd } from '../support/server.ts';

/** `POST /v1/mcp`, driven by the protocol's official client with a key of an operator. */

interface Answered {
  readonly isError?: boolean;
  readonly content: readonly { readonly text: string }[];
}

let rights: Rights;
let key: string;
let client: Client;

async function connect(secret: string, url = rights.gpd.url): Promise<Client> {
  const connected = new Client({ name: 'test', version: '1' });
  const requestInit = { headers: bearer(secret) };
  await connected.connect(new StreamableHTTPClientTransport(new URL('/v1/mcp', url), { requestInit }));
  return connected;
}

async function question(name: string, input: Record<string, unknown> = {}, from = client) {
  const { isError = false, content } = (await from.callTool({ name, arguments: input })) as Answered;
  const text = content[0]?.text ?? '';
  return { isError, text, value: JSON.parse(text) as Record<string, unknown> };
}

beforeAll(async () => {
  rights = await startRights();
  key = await apiKey(rights, 'operator');
  client = await connect(key);
});
afterAll(async () => {
  await client.close();
  await rights.stop();
});

it('answers the questions of gpd mcp about the tenant of the key, and names nobody', async () => {
  const { tools } = await client.listTools();
  expect(tools).toHaveLength(5);
  expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);
  const visit = await rights.visit({ bot: true });
  const verdict = await question('why_did_this_verdict_fall', { requestId: visit.requestId });
  expect(verdict.value).toMatchObject({ class: 'undeclared_automation' });
  expect(verdict.text).not.toContain(visit.visitorId);
  const person = { principalId: 'alice@shop.example', purpose: 'device-identification' };
  expect((await question('why_was_this_person_asked', person)).value).toMatchObject({
    reason: 'never-asked',
  });
  const statement = { statement: 'I am Maria Sample.', email: 'maria@sample.example' };
  const filed = await rights.me(visit, 'contest', { body: statement });
  const { contestId } = filed.json() as { contestId: string };
  const overdue = await question('what_is_overdue');
  expect(overdue.value).toMatchObject({ objections: [{ contestId }], incompleteErasures: 0 });
  expect(overdue.text).not.toMatch(/Maria|sample\.example/);
  expect((await question('which_rule_is_overturned_most')).value).toHaveProperty('rules');
});

it('says nothing of another tenant, and leaves doctor to the machine while there are several', async () => {
  const visit = await rights.visit();
  const other = await connect(await apiKey(rights, 'operator', OTHER));
  const foreign = await question('why_did_this_verdict_fall', { requestId: visit.requestId }, other);
  expect(foreign).toMatchObject({ isError: true, value: { error: expect.stringMatching(/^no decision/) } });
  expect((await question('what_is_overdue', {}, other)).value).toMatchObject({ objections: [] });
  const doctor = await question('what_does_doctor_say', {}, other);
  expect(doctor).toMatchObject({ isError: true });
  expect(doctor.text).not.toContain(KID);
  await other.close();
});

it('says what doctor says to the key of the only tenant', async () => {
  const gpd = await startGpd();
  const only = await connect(await addApiKey(gpd, 'operator'), gpd.url);
  const { isError, value } = await question('what_does_doctor_say', {}, only);
  expect({ isError, value }).toMatchObject({
    isError: false,
    value: { findings: expect.any(Array) as unknown },
  });
  await only.close();
  await gpd.stop();
});

it('is for an operator’s key alone, not for a page, and keeps nothing open', async () => {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const send = (headers: object, body: object = ping) =>
    postJson(rights.gpd.url, '/v1/mcp', body, { ...headers });
  expectError(await send({}), 'unauthenticated');
  for (const scope of ['secret', 'read-only', 'publishable'])
    expectError(await send(bearer(await apiKey(rights, scope))), 'insufficient-scope');
  expectError(await send({ ...bearer(key), 'sec-fetch-site': 'cross-site' }), 'secret-key-in-page');
  expectError(await send(bearer(key), [ping]), 'invalid-request');
  for (const method of ['GET', 'DELETE'])
    expect((await ask(rights.gpd.url, '/v1/mcp', { method, headers: bearer(key) })).status).toBe(405);
  const listen = { ...ping, method: 'subscriptions/listen', params: {} };
  expect(
    (await send({ ...bearer(key), accept: 'application/json, text/event-stream' }, listen)).text,
  ).toContain('"error"');
});

it('notes each question in the audit log by the key and a reference', async () => {
  const text = JSON.stringify(await rights.gpd.json(['audit', KID, '--action', 'mcp.asked']));
  expect(text).toContain('why_did_this_verdict_fall');
  expect(text).not.toMatch(/alice|req_/);
});
