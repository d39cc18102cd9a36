import { expect, it } from 'vitest';
import { newDirectory, refreshDirectory, startAgents } from '../../src/agents/service.ts';
import { type AgentDirectory, listDirectories } from '../../src/agents/store.ts';
import {
  createAgent,
  createDeps,
  createRequest,
  signedHeaders,
  verifiedAgent,
} from '../agents/support/agent.ts';
import { createSqlite } from '../agents/support/sqlite.ts';
import { addAgent } from '../support/agents.ts';
import { NOW } from '../support/make.ts';
import { started } from '../support/started.ts';
import { type Answer, jwks, MEDIA_TYPE, startDirectory } from './support/server.ts';

/** The card of an agent (draft-meunier-webbotauth-registry-04): when it is shown, and that no verdict depends on it. */

const server = started(() => startDirectory(20_000));
const file = started(() => createSqlite());
const cardUrl = () => new URL('/bot', server.url).href;
const agent = createAgent();

const card = (over: object = {}) => ({
  client_id: cardUrl(),
  client_name: 'Example Bot',
  client_uri: 'https://agent.example/about',
  contacts: ['mailto:bots@agent.example'],
  jwks_uri: server.url,
  web_bot_auth: { trigger: 'crawler', purpose: 'search' },
  ...over,
});

/** Serves keys and a card, and refreshes both. */
async function refresh(
  answer: Answer,
  before = listed(),
  options: Partial<typeof server.options> = {},
): Promise<AgentDirectory> {
  server.answer = (response, request) =>
    request.url === '/bot' ? answer(response, request) : jwks([agent.jwk])(response, request);
  if (before.triedAt === null) await addAgent(file.database, before);
  const fetchOptions = { ...server.options, ...options };
  const { directory } = await refreshDirectory(file.database, before, () => NOW, fetchOptions);
  expect(await listDirectories(file.database)).toEqual([directory]);
  return directory;
}
const listed = (): AgentDirectory => newDirectory(server.url, 'listed', cardUrl());
const served =
  (document: unknown): Answer =>
  (response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));

it('is read from its URL, and what is unknown or malformed in it is ignored', async () => {
  const says = {
    name: 'Example Bot',
    page: 'https://agent.example/about',
    contacts: ['mailto:bots@agent.example'],
    trigger: 'crawler',
    purpose: 'search',
  };
  expect((await refresh(served(card({ logo_uri: 7, more: [] })))).card).toEqual({
    url: cardUrl(),
    says,
    failure: null,
  });
  const odd = card({
    client_name: 'Example\u202e Bot',
    client_uri: 'javascript:alert(1)',
    contacts: ['mailto:bots@agent.example', 'x'.repeat(300), 7, 'javascript:alert(1)'],
    web_bot_auth: { trigger: 'sometimes', purpose: ['search'] },
  });
  expect((await refresh(served(odd))).card?.says).toEqual({
    name: null,
    page: null,
    contacts: ['mailto:bots@agent.example'],
    trigger: null,
    purpose: null,
  });
});

it.each<readonly [string, () => Answer, string]>([
  [
    'that names another URL',
    () => served(card({ client_id: `${cardUrl()}/` })),
    'its client_id is another URL',
  ],
  ['without client_id', () => served({ ...card(), client_id: undefined }), 'its client_id is another URL'],
  [
    'of another key set',
    () => served(card({ jwks_uri: 'https://mallory.example/keys' })),
    'its jwks_uri is not the URL of this key set',
  ],
  ['with keys of both kinds', () => served(card({ jwks: { keys: [] } })), 'it has both jwks and jwks_uri'],
  ['that is a list', () => served([]), 'it is no card'],
  [
    'behind a redirect',
    () => (response) => void response.writeHead(302, { location: '/keys' }).end(),
    'it answered 302 and not 200',
  ],
  ['that is too large', () => served(card({ more: 'x'.repeat(70_000) })), 'the document is too large'],
  ['that does not answer', () => () => {}, 'it did not answer in time'],
])('%s is a failure of the card alone: the last one and the keys stay', async (_name, answer, failure) => {
  const good = await refresh(served(card()));
  // Only what never answers may be given up early: a busy machine is late with the others.
  const options = failure === 'it did not answer in time' ? { timeoutMs: 300 } : {};
  const failed = await refresh(answer(), good, options);
  expect(failed).toEqual({ ...good, card: { ...good.card, failure } });
  expect(failed).toMatchObject({ failure: null, keys: [{ thumbprint: agent.thumbprint }] });
});

it('is fetched for pinned keys too, which are not, and changes no verdict', async () => {
  const pinned = { ...newDirectory(server.url, 'pinned', cardUrl()), keys: listed().keys };
  server.asked.length = 0;
  await refresh(served(card()), pinned);
  expect(server.asked).toEqual(['/bot']);
  server.answer = (response, request) =>
    request.url === '/bot' ? response.writeHead(500).end() : jwks([agent.jwk], MEDIA_TYPE)(response, request);
  await addAgent(file.database, listed());
  const agents = await startAgents(file.database, {
    openDiscovery: false,
    clock: () => NOW,
    onFault: (error) => {
      throw error;
    },
    fetchOptions: server.options,
    interval: 20,
  });
  const signer = { ...agent, origin: new URL(server.url).origin };
  const verified = () => verifiedAgent(createDeps([], agents), createRequest(signedHeaders(signer)), NOW);
  await expect.poll(verified, { timeout: 20_000 }).toBe(signer.origin);
  await agents.stop();
  expect(await listDirectories(file.database)).toMatchObject([
    { failure: null, card: { says: null, failure: 'it answered 500 and not 200' } },
  ]);
});
