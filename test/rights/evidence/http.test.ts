import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { ALICE, day, linesOf, OTHERS, type People, QUERY, startWithPeople, unpackParts } from './support.ts';

/** `GET /v1/evidence` (contract-2 section 23). */

let people: People;
beforeAll(async () => {
  people = await startWithPeople();
});
afterAll(() => people.api.stop());

const get = (query: string, key = people.api.keys.operator) => people.api.get(`/v1/evidence?${query}`, key);

async function download(query: string) {
  const { url } = people.api.gpd;
  const response = await fetch(`${url}/v1/evidence?${query}`, {
    headers: { authorization: `Bearer ${people.api.keys.operator}` },
  });
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}

it('hands an operator the file as a ZIP, and audits the hash of what was sent', async () => {
  const { response, bytes } = await download(`${QUERY}&principal=${encodeURIComponent(ALICE)}`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/zip');
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.get('content-length')).toBe(String(bytes.length));
  expect(response.headers.get('content-disposition')).toBe(
    `attachment; filename="evidence-${KID}-${day(-1)}-${day(2)}.zip"`,
  );
  const file = join(tempDir('out'), 'http.zip');
  writeFileSync(file, bytes);
  const { parts } = unpackParts(file);
  expect(linesOf(parts.get('openings.ndjson'))[0]).toMatchObject({ principalId: ALICE });
  const audit = await people.cli('audit', KID, '--action', 'evidence.made', '--json');
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const [row] = JSON.parse(audit.stdout) as readonly { object: string; role: string; detail: object }[];
  expect(row).toMatchObject({ role: 'operator', detail: { sha256 } });
  // A keyed reference, and no id.
  expect(row?.object).toMatch(/^[\w-]{43}$/);
});

it('the same request gives the same parts as the command', async () => {
  const { bytes } = await download(QUERY);
  const [a, b] = [join(tempDir('out'), 'a.zip'), join(tempDir('out'), 'b.zip')];
  writeFileSync(a, bytes);
  await people.cli('evidence', KID, '--from', day(-1), '--to', day(2), '--out', b);
  const [served, fromCommand] = [unpackParts(a).parts, unpackParts(b).parts];
  expect([...served.keys()]).toEqual([...fromCommand.keys()]);
  for (const [name, part] of served)
    if (name !== 'made-at.txt') expect(fromCommand.get(name)?.equals(part), name).toBe(true);
});

it('is for an operator’s key alone', async () => {
  const { keys } = people.api;
  for (const key of [keys.secret, keys['read-only'], keys.publishable, await people.api.session(OTHERS[0])])
    expectError(await get(QUERY, key), 'insufficient-scope');
  expectError(await get(QUERY, keys.revoked), 'unauthenticated');
});

it.each([
  ['', 'from: '],
  [`from=${day(0)}`, 'to: '],
  [`from=${day(0)}&to=${day(0)}`, 'to: '],
  [`from=2026-02-30&to=2026-03-04`, 'from: '],
  [`from=${day(0)}&from=${day(-1)}&to=${day(1)}`, 'from: '],
  [`${QUERY}&principal=a&request=b`, 'request: '],
  [`${QUERY}&principal=`, 'principal: '],
])('%s: 400 names the parameter', async (query, detail) => {
  const refused = await get(query);
  expectError(refused, 'invalid-request');
  expect((refused.json() as { details: readonly string[] }).details[0]).toContain(detail);
});

it.each([
  ['principal', 'mallory'],
  ['request', 'req_01KAG000000000000000000000'],
])('an unknown %s: 404, and no row in the audit log', async (name, id) => {
  const count = async (): Promise<number> =>
    (JSON.parse((await people.cli('audit', KID, '--action', 'evidence.made', '--json')).stdout) as object[])
      .length;
  const before = await count();
  const refused = await get(`${QUERY}&${name}=${id}`);
  expectError(refused, 'not-found');
  expect(refused.text).not.toContain(id);
  expect(await count()).toBe(before);
});

it('makes one file at a time for a tenant, and frees the place', async () => {
  const all = await Promise.all([get(QUERY), get(QUERY), get(QUERY)]);
  const statuses = all.map(({ status }) => status);
  expect(statuses).toContain(200);
  for (const reply of all) if (reply.status !== 200) expectError(reply, 'rate-limited');
  await expect.poll(async () => (await get(QUERY)).status).toBe(200);
});
