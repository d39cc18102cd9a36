import { expect, it } from 'vitest';
import { KID } from '../support/constants.ts';
import { started } from '../support/started.ts';
import { signIn, startConsole } from './support/console.ts';
import { rows } from './support/data.ts';

/** A data-protection officer makes a file of evidence (contract-2 section 23). */

const site = started(() => startConsole());
const dora = started(() => signIn(site.url, 'dora'));
const ada = started(() => signIn(site.url, 'ada'));

const PERIOD = { from: '2020-01-01', to: '2099-01-01' };
const make = (fields: Readonly<Record<string, string>>) =>
  dora.act('/console/evidence', { ...PERIOD, kind: 'all', id: '', ...fields });

it('the console has Evidence for a dpo alone', async () => {
  const page = (await dora.get('/console/evidence')).text;
  expect(page).toContain('href="/console/evidence"');
  expect(page).toContain('Make the file');
  expect((await ada.get('/console/overview')).text).not.toContain('/console/evidence');
  expect((await ada.get('/console/evidence')).status).toBe(403);
  expect((await ada.act('/console/evidence', { ...PERIOD, kind: 'all' })).status).toBe(403);
});

it('the button hands over the file, and the audit log names the dpo and the hash', async () => {
  const reply = await make({});
  expect(reply.status).toBe(200);
  expect(reply.headers['content-type']).toBe('application/zip');
  expect(reply.headers['content-disposition']).toContain(`evidence-${KID}-2020-01-01-2099-01-01.zip`);
  expect(reply.text.startsWith('PK')).toBe(true);
  const row = (await rows(site, 'audit_log')).findLast((one) => one['action'] === 'evidence.made');
  expect(row).toMatchObject({ role: 'dpo', object: KID });
  expect(JSON.parse(String(row?.['detail']))).toMatchObject({
    from: '2020-01-01T00:00:00.000Z',
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
  });
});

it('a person by the id of a request; the id is in no address and no row', async () => {
  const { requestId } = await site.decide();
  const reply = await make({ kind: 'request', id: requestId });
  expect(reply.status).toBe(200);
  const row = (await rows(site, 'audit_log')).findLast((one) => one['action'] === 'evidence.made');
  expect(String(row?.['object'])).toMatch(/^[\w-]{43}$/);
  expect(JSON.stringify(row)).not.toContain(requestId);
});

it.each([
  [{ to: '2020-01-01' }, 400, 'The end must be after from'],
  [{ from: '2020-02-30' }, 400, 'The start must be a date'],
  [{ kind: 'principal' }, 400, 'The id is missing'],
  [{ kind: 'principal', id: 'mallory' }, 404, 'is not known in this tenant'],
])('%o: the error is at its field, and what was typed stays', async (fields, status, text) => {
  const reply = await make(fields);
  expect(reply.status).toBe(status);
  expect(reply.text).toContain(text);
  const { to } = { ...PERIOD, ...fields };
  expect(reply.text).toContain(`value="${to}"`);
});
