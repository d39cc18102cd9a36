import { beforeAll, expect, it } from 'vitest';
import { WORDS } from '../../src/console/words.ts';
import { KID, REASON } from '../support/constants.ts';
import { started } from '../support/started.ts';
import { signIn, startConsole, type Visitor } from './support/console.ts';

/** A page says that something was done once, after it was done, in the session that did it: no address can make it say so. */

const site = started(() => startConsole());
let ada: Visitor;
let dora: Visitor;
let path = '';
beforeAll(async () => {
  ada = await signIn(site.url, 'ada');
  dora = await signIn(site.url, 'dora');
  const { requestId, visitorId } = await site.decide();
  path = `/console/contests/${await site.contest(requestId, visitorId)}`;
});

const DONE = /<strong>Done\.<\/strong>/;

it('an address says nothing of an act', async () => {
  const { requestId, visitorId } = await site.decide();
  await site.gpd.json(['erase', '--tenant', KID, '--visitor', visitorId, '--yes']);
  expect(requestId).toMatch(/^req_/);
  const receipt = /\/console\/receipts\/era_\w+/.exec((await dora.get('/console/receipts')).text)?.[0] ?? '';
  const acts = [...Object.keys(WORDS.caseDone), 'erased', 'placed', 'revoked'];
  for (const page of [path, '/console/queue', '/console/holds', '/console/sessions', receipt]) {
    for (const act of acts) {
      const { status, text } = await dora.get(`${page}?done=${act}&limited=era_01KAG0000000000000000000AA`);
      expect([page, act, status]).toEqual([page, act, 200]);
      expect(text).not.toMatch(DONE);
      expect(text).not.toContain('era_01KAG0000000000000000000AA');
    }
  }
});

it('what was done is said once, on its page alone, and to nobody else', async () => {
  const claim = async () => {
    const reply = await ada.post(`${path}/claim`, { csrf: await ada.csrf() });
    expect(reply.headers.location).toBe(path);
  };
  await claim();
  expect((await ada.get('/console/queue')).text).not.toMatch(DONE);
  const [name, value] = [...ada.cookies].find(([cookie]) => cookie.endsWith('gpd_flash'))!;
  expect((await ada.get(path)).text).toMatch(
    /Done\.<\/strong> The case is yours until \d{4}-\d\d-\d\d \d\d:\d\d UTC\./,
  );
  expect((await ada.get(path)).text).not.toMatch(DONE);
  // Another session cannot use the cookie.
  dora.cookies.set(name, value);
  expect((await dora.get(path)).text).not.toMatch(DONE);
  dora.cookies.set(name, 'nonsense');
  expect((await dora.get(path)).status).toBe(200);
});

it('the case is resolved: its page says so until it is read', async () => {
  const version = /name="version" value="(\d+)"/.exec((await ada.get(path)).text)?.[1] ?? '';
  const fields = { csrf: await ada.csrf(), outcome: 'upheld', text: REASON, version };
  expect((await ada.post(`${path}/resolve`, fields)).headers.location).toBe(path);
  expect((await ada.get(path)).text).toContain(WORDS.caseDone.resolved);
  expect((await ada.get(path)).text).not.toContain(WORDS.caseDone.resolved);
});
