import { describe, expect, it } from 'vitest';
import { KEEP_NOTHING } from '../../src/rights/erase/erase-service.ts';
import { KID } from '../support/constants.ts';
import { insertBatches } from '../support/database.ts';
import { headlessChrome } from '../support/samples.ts';
import { started } from '../support/started.ts';
import { signIn, startConsole } from './support/console.ts';
import { change, rows } from './support/data.ts';

/** A data-protection officer searches, holds, exports and erases, and each act is in the audit log. */

const site = started(() => startConsole());
const dora = started(() => signIn(site.url, 'dora'));
const olaf = started(() => signIn(site.url, 'olaf'));

const handleOf = (text: string): string =>
  /<code>([0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4})<\/code>/.exec(text)?.[1] ?? '';
const find = (kind: string, id: string) => dora.act('/console/subjects', { kind, id });

it('the sidebar counts what waits: objections, in red when one is overdue, erasures and legal holds', async () => {
  const shown = (text: string, place: string): string =>
    new RegExp(`href="/console/${place.replace('?', '\\?')}"[^>]*><span>[^<]*</span>(.*?)</a>`)
      .exec(text)?.[1]
      ?.trim() ?? 'no such place';
  const path = '/console/overview';
  const before = (await dora.get(path)).text;
  const places = ['queue', 'queue?list=waiting', 'register', 'holds'];
  const counts = (text: string) => places.map((place) => shown(text, place));
  expect(counts(before)).toEqual(['', '', '', '']);
  const { requestId, visitorId } = await site.decide();
  const contestId = await site.contest(requestId, visitorId);
  expect(shown((await dora.get(path)).text, 'queue')).toBe('<b>1</b>');
  await change(site, (tx) => tx('contests').where({ contest_id: contestId }).update({ due_at: 1 }));
  await change(site, (tx) =>
    tx('legal_holds').insert({ kid: KID, durable: 'x', basis: 'a court asks for it', created_at: 1 }),
  );
  expect((await dora.act(`/console/contests/${contestId}/claim`)).status).toBe(303);
  const erasure = {
    receipt_id: 'ers_sidebar',
    kid: KID,
    subject: 's',
    requested_by: 'dpo',
    erased_at: 1,
    scopes: '[]',
  };
  await change(site, async (tx) => {
    await tx('erasures').insert({ ...erasure, refs: '{}', state: 'logged' });
  });
  expect(counts((await dora.get(path)).text)).toEqual([
    '<b class="late">1</b>',
    '<b>1</b>',
    '<b>1</b>',
    '<b>1</b>',
  ]);
  // Another tenant's are not counted.
  expect(shown((await olaf.get(path)).text, 'queue')).toBe('');
  await change(site, async (tx) => {
    await tx('legal_holds').where({ durable: 'x' }).delete();
    await tx('erasures').where({ receipt_id: 'ers_sidebar' }).delete();
    await tx('contests').where({ contest_id: contestId }).delete();
  });
});

describe('finding a subject', () => {
  it('by visitor id, by request id and by principal; the id is in no address and in no row of the log', async () => {
    const one = await site.decide();
    const before = (await rows(site, 'audit_log')).length;
    for (const [kind, id] of [
      ['visitor', one.visitorId],
      ['request', one.requestId],
    ] as const) {
      const reply = await find(kind, id);
      expect(reply.status).toBe(200);
      expect(reply.text).toContain('Automated visit');
      expect(handleOf(reply.text)).not.toBe('');
      expect([...reply.text.matchAll(/(?:href|action)="([^"]+)"/g)].join()).not.toContain(id);
    }
    const log = (await rows(site, 'audit_log')).slice(before);
    expect(log.map((row) => row['action'])).toEqual(['subject.searched', 'subject.searched']);
    expect(JSON.stringify(log)).not.toContain(one.visitorId);
    expect(JSON.stringify(log)).not.toContain(one.requestId);
  });

  it('by a request id that was entered as a visitor id', async () => {
    const { requestId } = await site.decide();
    const reply = await find('visitor', requestId);
    expect(reply.status).toBe(200);
    expect(handleOf(reply.text)).not.toBe('');
  });

  it.each([
    ['visitor', 'AAAAAAAAAAAAAAAAAAAAAA', 404],
    ['request', 'req_01KAG0000000000000000000AA', 404],
    ['principal', 'nobody-we-know', 404],
    ['visitor', '', 400],
    ['visitor', 'x'.repeat(300), 400],
    ['principal', 'a\u0000b', 400],
    ['durable', 'acme|abc', 400],
  ])('%s %j: %d', async (kind, id, status) => {
    expect((await find(kind, id)).status).toBe(status);
  });

  it('by a request id whose device others may share: that request alone, and it says so', async () => {
    const signals = headlessChrome();
    Object.assign(signals.graphics, { renderer: 'Google SwiftShader' });
    const { requestId } = await site.decide(undefined, signals);
    const { text } = await find('request', requestId);
    expect(text).toContain('A request id leads to that request alone where other devices may share its id');
    expect(text).toContain('Search by a visitor id to place one.');
    expect(text).not.toContain('No device is known');
  });

  it('another tenant finds nothing', async () => {
    const { requestId, visitorId } = await site.decide();
    for (const [kind, id] of [
      ['visitor', visitorId],
      ['request', requestId],
    ] as const) {
      for (const path of ['', '/plan', '/erase', '/export']) {
        const fields = { kind, id, confirm: 'x' };
        expect((await olaf.act(`/console/subjects${path}`, fields)).status).toBe(404);
      }
      const basis = 'Because we would like to keep it.';
      const fields = { kind, id, 'scope-decisions': 'on', basis };
      expect((await olaf.act('/console/subjects/hold', fields)).status).toBe(404);
    }
    expect((await find('request', requestId)).status).toBe(200);
  });

  it('a reviewer is not let in, by page or by form', async () => {
    const ada = await signIn(site.url, 'ada');
    for (const path of [
      '/subjects',
      '/receipts',
      '/register',
      '/register.csv',
      '/holds',
      '/audit',
      '/evidence',
    ]) {
      expect((await ada.get(`/console${path}`)).status).toBe(403);
    }
    const { requestId } = await site.decide();
    const forms = ['/subjects', '/subjects/plan', '/subjects/erase', '/subjects/export', '/audit/export'];
    for (const path of forms) {
      const reply = await ada.act(`/console${path}`, { kind: 'request', id: requestId });
      expect(reply.status).toBe(403);
      expect(reply.text).toContain('for the data-protection officer');
    }
  });
});

describe('erasing', () => {
  it('a plan takes nothing; the wrong words take nothing; the handle takes it all, and the receipt stays', async () => {
    const { requestId, visitorId } = await site.decide();
    await site.contest(requestId, visitorId, 'a statement that goes too');
    const key = { kind: 'request', id: requestId };
    const plan = await dora.act('/console/subjects/plan', key);
    expect(plan.status).toBe(200);
    expect(plan.text).toContain('Nothing is deleted yet');
    // The plan must first name an unanswered objection.
    const warning = plan.text.indexOf('1 open objection will be erased unanswered: due in');
    expect(warning).toBeGreaterThan(0);
    expect(warning).toBeLessThan(plan.text.indexOf('<table'));
    const dry = ['erase', '--tenant', KID, '--request', requestId, '--dry-run'];
    expect((await site.gpd.cli(dry)).stdout).toMatch(/1 open contest, due in \d+ days, unanswered/);
    expect(await site.gpd.json(dry)).toMatchObject({ decisions: 1, openContests: 1 });
    const handle = handleOf(plan.text);
    const counted = [
      ...plan.text.matchAll(
        /<tr>\s*<th scope="row"[^>]*>([^<]+)<\/th>\s*<td[^>]*>is deleted<\/td>\s*<td[^>]*>(\d+)</g,
      ),
    ];
    expect(counted.map(([, scope, n]) => [scope, Number(n)])).toEqual([
      ['When the device was seen', 1],
      ['Visitor ids', 1],
      ['Decisions', 1],
      ['Objections', 1],
      ['Network counts', 2],
      ['Bytes in the files of the database', 1],
    ]);
    expect((await find('request', requestId)).status).toBe(200);
    for (const confirm of ['', 'erase', requestId, handle.slice(0, -1)]) {
      const reply = await dora.act('/console/subjects/erase', { ...key, confirm });
      expect(reply.status).toBe(400);
      expect(reply.text).toContain('Nothing was erased');
    }
    expect((await find('request', requestId)).status).toBe(200);
    const done = await dora.act('/console/subjects/erase', { ...key, confirm: ` ${handle.toUpperCase()} ` });
    expect(done.status).toBe(303);
    expect(done.headers.location).toMatch(/^\/console\/receipts\/era_\w{26}$/);
    const receipt = await dora.get(done.headers.location!);
    expect(receipt.text).toContain('The subject is erased');
    expect(receipt.text).not.toContain(requestId);
    expect(receipt.text).not.toContain(visitorId);
    expect((await find('request', requestId)).status).toBe(404);
    expect((await dora.get('/console/receipts')).text).toContain(done.headers.location!);
    expect((await olaf.get(done.headers.location!)).status).toBe(404);
    expect((await olaf.get('/console/receipts')).text).toContain('No erasures yet');
    await change(site, (tx) =>
      tx('erasures')
        .where({ receipt_id: /era_\w{26}/.exec(done.headers.location!)![0] })
        .update({ scopes: `[{"${handle}` }),
    );
    const damaged = (await dora.get('/console/receipts')).text;
    expect(damaged).toMatch(/receipts cannot be read: era_\w{26}\./);
    expect(damaged).not.toContain('No erasures yet');
    expect(damaged).not.toContain(handle);
  });

  it('meets a legal hold, whose release names what to erase again', async () => {
    const { requestId } = await site.decide();
    const key = { kind: 'request', id: requestId };
    const basis = 'Proceedings 12/26 before the district court.';
    const bad = await dora.act('/console/subjects/hold', { ...key, basis: 'too short' });
    expect(bad.status).toBe(400);
    expect(bad.text).toContain('too short');
    const placed = await dora.act('/console/subjects/hold', { ...key, basis });
    expect(placed.headers.location).toBe('/console/holds');
    expect((await dora.get('/console/holds')).text).toContain('The hold is in place.');
    const plan = await dora.act('/console/subjects/plan', key);
    expect(plan.text).toContain(basis);
    expect(plan.text).toMatch(/Nothing can be erased now: a legal hold keeps all [1-9]\d* rows\./);
    expect(plan.text).toContain('<button>Record the request</button>');
    expect(plan.text).not.toMatch(/Erase it now|cannot be brought back/);
    const dryRun = await site.gpd.cli(['erase', '--tenant', KID, '--request', requestId, '--dry-run']);
    expect(dryRun.stdout).toMatch(/^would erase nothing: a legal hold keeps all [1-9]\d* rows\n/);
    const handle = handleOf(plan.text);
    const erased = await dora.act('/console/subjects/erase', { ...key, confirm: handle });
    const receipt = (await dora.get(erased.headers.location!)).text;
    expect(receipt).toContain('retained');
    // No text may claim that the erasure is complete: the request stays open until the hold is released.
    expect(receipt).toMatch(/Nothing was erased: a legal hold keeps all [1-9]\d* rows\./);
    expect(receipt).toContain('The request is recorded.');
    expect(receipt).not.toMatch(/[Pp]artly|is erased\.|The erasure is complete/);
    const receiptId = /era_\w{26}/.exec(erased.headers.location!)![0];
    expect((await dora.get('/console/receipts')).text).toMatch(
      new RegExp(`${receiptId}</code></a>.*?data-label="State">waiting for a hold<`, 's'),
    );
    const registered = async () => {
      const page = (await dora.get('/console/register')).text;
      const row = page.split('<tr').find((one) => one.includes(receiptId)) ?? '';
      const csv = (await dora.get('/console/register.csv')).text;
      return {
        row: row.replace(/\s*\n\s*/g, ''),
        csv: csv.split('\r\n').find((line) => line.includes(receiptId)) ?? '',
      };
    };
    const open = await registered();
    expect(open.row).toMatch(/due in \d+ days.*data-label="State">Waiting: a legal hold/);
    expect(open.csv).toMatch(/,partly,,dpo,,,$/);
    const listed = await site.gpd.cli(['erase', 'list', KID]);
    expect(listed.stdout).toMatch(new RegExp(`${receiptId} .* held`));
    expect((await site.gpd.cli(['rights', 'register', KID])).stdout).toMatch(
      new RegExp(`${receiptId} .* partly`),
    );
    expect((await site.gpd.cli(['erase', 'status', receiptId])).stdout).toMatch(/^Nothing was erased: /m);
    expect(receipt).toContain(basis);
    expect((await rows(site, 'decisions')).map((row) => row['request_id'])).toContain(requestId);

    const holds = (await dora.get('/console/holds')).text;
    expect(holds).toContain(handle);
    expect(holds).toContain(`<a href="/console/receipts/${receiptId}">`);
    const device = /name="device" value="([\w-]{43})"/.exec(holds)?.[1] ?? '';
    const release = { device };
    expect((await olaf.act('/console/holds/release', release)).status).toBe(404);
    const released = await dora.act('/console/holds/release', release);
    expect(released.headers.location).toBe('/console/holds');
    const named = (await dora.get('/console/holds')).text;
    expect(named).toContain('Run them again');
    expect(named).toContain(`<a href="/console/receipts/${receiptId}">`);
    await dora.act('/console/subjects/erase', { ...key, confirm: handle });
    expect((await rows(site, 'decisions')).map((row) => row['request_id'])).not.toContain(requestId);
    const after = await registered();
    expect(after.row).toContain('data-label="State">Done');
    expect(after.csv).toMatch(/,done,2\d{3}-[\dT:.-]+Z,dpo,,,$/);
    expect((await dora.act('/console/holds/release', release)).status).toBe(404);
    const actions = (await rows(site, 'audit_log')).map((row) => row['action']);
    expect(actions).toEqual(expect.arrayContaining(['hold.placed', 'hold.released', 'subject.erased']));
  });
});

/** Address of a page around this one. */
const linkOf = (text: string, name: 'next' | 'prev'): string | undefined =>
  new RegExp(`href="([^"]+)" rel="${name}"`).exec(text)?.[1]?.replaceAll('&amp;', '&');

/** Texts of all pages of a list, from this one on. */
async function turnAll(path: string): Promise<string[]> {
  const texts: string[] = [];
  for (let next: string | undefined = path; next !== undefined; next = linkOf(texts.at(-1) ?? '', 'next')) {
    const { text, status } = await dora.get(next);
    expect(status).toBe(200);
    texts.push(text);
  }
  return texts;
}

describe('more receipts and requests than a page shows', () => {
  const idsOf = (text: string): string[] =>
    [...text.matchAll(/\/console\/receipts\/(era_\w{26})"/g)].map(([, id = '']) => id);

  it('are read page by page, in both ways, also across a damaged receipt, and filtered', async () => {
    const row = {
      kid: KID,
      subject: 's',
      scopes: '[]',
      refs: JSON.stringify({ refs: [], keep: KEEP_NOTHING }),
      requested_by: 'dpo',
      state: 'done',
    };
    const receipts = Array.from({ length: 210 }, (_, i) => ({
      ...row,
      receipt_id: `era_${String(i).padStart(26, '0')}`,
      // Several of one millisecond.
      erased_at: 1000 + Math.floor(i / 7),
      files_clean_at: i === 5 ? null : 2000,
      ...(i === 109 && { refs: 'damaged' }),
    }));
    await change(site, (tx) => insertBatches(tx, 'erasures', receipts));
    const pages = await turnAll('/console/receipts');
    const listedIds = pages.flatMap(idsOf).filter((id) => id.startsWith('era_0000000'));
    expect(listedIds).toEqual(
      receipts
        .map(({ receipt_id: id }) => id)
        .reverse()
        .filter((id) => !id.endsWith('109')),
    );
    expect(pages.filter((text) => text.includes('cannot be read: era_')).length).toBeGreaterThan(0);
    const back = await dora.get(linkOf(pages[2]!, 'prev')!);
    expect(idsOf(back.text)).toEqual(idsOf(pages[1]!));

    const requests = await turnAll('/console/register?kind=erasure&state=done');
    expect(requests.flatMap(idsOf)).toContain(receipts[4]!.receipt_id);
    expect(requests.flatMap(idsOf)).not.toContain(receipts[5]!.receipt_id);
    expect(linkOf(requests[0]!, 'next')).toContain('kind=erasure&state=done');
    const earlier = await dora.get(linkOf(requests[2]!, 'prev')!);
    expect(idsOf(earlier.text)).toEqual(idsOf(requests[1]!));
    expect((await dora.get('/console/register?kind=erasure&state=open')).text).toContain(
      receipts[5]!.receipt_id,
    );
    expect((await dora.get('/console/register?kind=contest&state=done&after=9~x')).text).toContain(
      'No request matches.',
    );
    for (const edited of ['?kind=x&state=y', '?before=x', '?after=~']) {
      const { text, status } = await dora.get(`/console/register${edited}`);
      expect([status, idsOf(text).length > 0]).toEqual([200, true]);
    }
    await change(site, (tx) => tx('erasures').where('erased_at', '<', 2000).delete());
  });
});

describe('more holds than a page shows', () => {
  const devicesOf = (text: string): string[] =>
    [...text.matchAll(/name="device" value="([\w-]{43})"/g)].map(([, device = '']) => device);

  it('are read page by page, and the last one can be released', async () => {
    const holds = Array.from({ length: 230 }, (_, i) => ({
      ...{ kid: KID, durable: `d${i}`, created_at: 1000 + i, basis: 'Proceedings 13/26.' },
    }));
    await change(site, async (tx) => {
      await tx('legal_holds').delete();
      await insertBatches(tx, 'legal_holds', holds);
    });
    const listedDevices: string[] = [];
    const pages = await turnAll('/console/holds');
    for (const text of pages) listedDevices.push(...devicesOf(text));
    expect(pages.map((text) => devicesOf(text).length)).toEqual([100, 100, 30]);
    const previous = await dora.get(linkOf(pages[2]!, 'prev')!);
    expect(devicesOf(previous.text)).toEqual(devicesOf(pages[1]!));
    const top = await dora.get(linkOf(previous.text, 'prev')!);
    expect([devicesOf(top.text), linkOf(top.text, 'prev')]).toEqual([devicesOf(pages[0]!), undefined]);
    expect(listedDevices).toHaveLength(230);
    expect(new Set(listedDevices).size).toBe(230);
    const release = { device: listedDevices.at(-1) ?? '' };
    expect((await dora.act('/console/holds/release', release)).headers.location).toBe('/console/holds');
    expect(await rows(site, 'legal_holds')).toHaveLength(229);
    for (const after of ['', 'x', 'A'.repeat(43), "a'~b"]) {
      const page = await dora.get(`/console/holds?after=${encodeURIComponent(after)}`);
      expect([page.status, devicesOf(page.text).length]).toEqual([200, 100]);
    }
    await change(site, (tx) => tx('legal_holds').delete());
  });
});

describe('exporting', () => {
  it('is a file, written as it is sent; no copy of it waits anywhere, and webhooks are told', async () => {
    await site.gpd.json(['webhooks', 'add', KID, 'http://127.0.0.1:9/x', '--allow-private']);
    const device = 'exported-device';
    for (let i = 0; i < 3; i += 1) await site.decide(device);
    const { requestId } = await site.decide(device);
    const fields = { kind: 'request', id: requestId };
    const found = (await dora.act('/console/subjects', fields)).text;
    expect(found).toContain('Missing: notice.controller, notice.contact.');
    expect(found).toContain('name="unnamed" required');
    const refused = await dora.act('/console/subjects/export', fields);
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('Not done.');
    const file = await dora.act('/console/subjects/export', { ...fields, unnamed: 'on' });
    expect(file.status).toBe(200);
    expect(file.headers).toMatchObject({ 'content-type': 'application/zip', 'cache-control': 'no-store' });
    expect(file.headers['content-disposition']).toMatch(/^attachment; filename="dsar-\d{4}-\d\d-\d\d\.zip"$/);
    expect(file.text.slice(0, 2)).toBe('PK');
    for (const name of ['index.html', 'export.json', 'decisions.csv', 'manifest.json', 'manifest.p7s']) {
      expect(file.text).toContain(name);
    }
    const log = (await rows(site, 'audit_log')).filter((row) => row['action'] === 'dsar.staff-exported');
    expect(log).toHaveLength(1);
    expect(log[0]?.['detail']).toBe('{"decisions":4,"encrypted":false}');
    // The server sees the webhook of the command line a moment later, and then tells it of each export.
    await expect
      .poll(async () => {
        await dora.act('/console/subjects/export', { ...fields, unnamed: 'on' });
        return (await rows(site, 'webhook_outbox')).map((row) => row['event']);
      })
      .toContain('export.ready');
  });

  it('a fault before the first byte is a page, never a file', async () => {
    const { requestId } = await site.decide();
    await change(site, (tx) => tx('meta').where({ name: 'archive-signer' }).update({ value: '{}' }));
    const fields = { kind: 'request', id: requestId, unnamed: 'on' };
    const page = await dora.act('/console/subjects/export', fields);
    await change(site, (tx) => tx('meta').where({ name: 'archive-signer' }).delete());
    expect(page.status).toBe(500);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.headers['content-disposition']).toBeUndefined();
  });
});

describe('looking somebody up', () => {
  it.each([
    ['a plan', '/console/subjects/plan', 'plan'],
    ['an export', '/console/subjects/export', 'export'],
    ['a hold', '/console/subjects/hold', 'hold'],
  ])('%s of somebody who is not there is a search, and in the log as one', async (_name, path, step) => {
    const before = (await rows(site, 'audit_log')).length;
    const fields = { kind: 'visitor', id: 'A'.repeat(22), unnamed: 'on', 'scope-decisions': 'on' };
    const basis = 'Proceedings 13/26 before the district court.';
    expect((await dora.act(path, { ...fields, basis })).status).toBe(404);
    const [row, ...furtherRows] = (await rows(site, 'audit_log')).slice(before);
    expect(furtherRows).toEqual([]);
    expect(row).toMatchObject({ role: 'dpo', action: 'subject.searched' });
    expect(JSON.parse(String(row?.['detail']))).toEqual({ by: 'visitor', found: false, step });
  });
});
