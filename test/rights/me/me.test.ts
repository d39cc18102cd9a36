import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { forgottenSchema, transparencyViewSchema } from '../../../src/schema/rights.ts';
import { ORIGIN, OTHER_ORIGIN, REASON } from '../../support/constants.ts';
import { expectCore, expectError, post, sessionOf } from '../../support/expect.ts';
import { ask } from '../../support/http.ts';
import { desktopChrome } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import { started } from '../../support/started.ts';
import { apiKey, keepSummaries, startRights, type Visit } from '../support/rights.ts';

const rights = started(() => startRights());
let secret: string;
beforeAll(async () => {
  secret = await apiKey(rights, 'secret');
});

/** These bands come from the studies (signals.md section 5). */
const PRIOR: Readonly<Record<string, string>> = {
  canvas: 'uncommon',
  family: 'common',
  fonts: 'uncommon',
  gpu: 'common',
  screen: 'common',
};

const rows = async (table: string, condition: string): Promise<number> =>
  Number((await rights.sql(`SELECT COUNT(*) AS n FROM ${table} WHERE ${condition}`))[0]?.['n']);

describe('the token', () => {
  it.each(['view', 'forget', 'export', 'contest'])(
    'every failure of %s is one and the same 401',
    async (action) => {
      const visit = await rights.visit();
      const another = await rights.visit();
      const atOther = await rights.visit({ target: rights.other, origin: OTHER_ORIGIN });
      const middle = Math.floor(visit.token.length / 2);
      const flipped = visit.token[middle] === 'A' ? 'B' : 'A';
      const forged = visit.token.slice(0, middle) + flipped + visit.token.slice(middle + 1);
      const replies = [
        await rights.call('/me', { action }, '', { cookie: `gp_session=${visit.session}`, origin: ORIGIN }),
        await rights.me(visit, action, { token: null }),
        await rights.me(visit, action, { token: 7 }),
        await rights.me(visit, action, { token: '' }),
        await rights.me(visit, action, { token: 'x'.repeat(5000) }),
        await rights.me(visit, action, { token: forged }),
        await rights.me(visit, action, { token: `${visit.token}=` }),
        await rights.me(visit, action, { session: another.session }),
        await rights.me(visit, action, { session: null }),
        await rights.me(visit, action, { origin: 'https://second.example' }),
        await rights.me(visit, action, { origin: 'https://evil.example' }),
        await rights.me(visit, action, { origin: 'null' }),
        await rights.me(visit, action, { origin: null }),
        await rights.me(atOther, action, { origin: ORIGIN }),
      ];
      const answers = replies.map(({ status, text }) => `${status} ${text}`);
      expect(answers).toEqual(answers.map(() => answers[0]));
      expectError(replies[0]!, 'unauthenticated');
      expect(replies[0]?.headers['www-authenticate']).toBe('Bearer');
      expect(await rows('decisions', `request_id = '${visit.requestId}'`)).toBe(1);
    },
  );

  it('is judged before the action', async () => {
    const visit = await rights.visit();
    expectError(await rights.me(visit, 'explode', { token: 'bad' }), 'unauthenticated');
    expectError(await rights.me(visit, 'explode'), 'invalid-request');
    expectError(await rights.call('/me', '[]'), 'invalid-request');
    expectError(await rights.call('/me', '{'), 'invalid-json');
    expectError(await ask(rights.gpd.url, '/me'), 'method-not-allowed');
  });

  it('is readable by its own origin alone (CORS)', async () => {
    const visit = await rights.visit();
    const reply = await rights.me(visit, 'view');
    expect(reply.headers['access-control-allow-origin']).toBe(ORIGIN);
    expect(reply.headers['access-control-allow-credentials']).toBe('true');
    const evil = await rights.me(visit, 'view', { origin: 'https://evil.example' });
    expect(evil.headers['access-control-allow-origin']).toBeUndefined();
  });
});

describe('forget', () => {
  it('erases the device behind the token, and says the same again', async () => {
    const device = 'c'.repeat(32);
    const first = await rights.visit({ device });
    const visit = await rights.visit({ device });
    const replies = [await rights.me(visit, 'forget'), await rights.me(visit, 'forget')];
    const [forgotten, again] = replies.map((reply) => forgottenSchema.strict().parse(reply.json()));
    expect(forgotten).toMatchObject({ forgotten: true, shared: false });
    expect(forgotten?.scopes.find(({ scope }) => scope === 'decisions')).toMatchObject({ count: 2 });
    expect(again).toMatchObject({ shared: false, receiptId: forgotten?.receiptId });
    expect(await rows('erasures', `receipt_id = '${forgotten?.receiptId}'`)).toBe(1);
    for (const { requestId } of [first, visit])
      expectError(await rights.decision(requestId, secret), 'no-such-decision');
    expect((await rights.visit({ device })).answer.confidence).toBe(0.6);
  });

  const countRows = async (): Promise<number[]> => {
    const [row] = await rights.sql(
      "SELECT (SELECT count(*) FROM erasures) AS receipts, (SELECT count(*) FROM audit_log WHERE action = 'subject.erased') AS acts",
    );
    return [Number(row?.['receipts']), Number(row?.['acts'])];
  };

  it('leaves one receipt where something is kept each time', async () => {
    const visit = await rights.visit({ bot: true, device: 'b2'.repeat(16) });
    const subject = await rights.as({ gpd_role: 'subject', gpd_visitor: visit.visitorId });
    await rights.call('/privacy/contest', { requestId: visit.requestId }, subject);
    const [receipts = 0, acts = 0] = await countRows();
    for (let i = 0; i < 4; i += 1) expect((await rights.me(visit, 'forget')).status).toBe(200);
    expect(await countRows()).toEqual([receipts + 1, acts + 1]);
  });

  it('erases that request alone where the id may be other people’s too', async () => {
    const signals = desktopChrome('d'.repeat(32));
    // Software graphics only: every such machine draws alike.
    Object.assign(signals['graphics'] as object, { renderer: 'Google SwiftShader' });
    const theirs = await rights.visit({ signals });
    const mine = await rights.visit({ signals });
    expect(mine.answer.needsAttestation).toBe(true);
    const forgotten = forgottenSchema.parse((await rights.me(mine, 'forget')).json());
    expect(forgotten.shared).toBe(true);
    expect(forgotten.scopes.find(({ scope }) => scope === 'decisions')).toMatchObject({ count: 1 });
    const { receiptId } = forgotten;
    expect((await rights.me(mine, 'forget')).json()).toMatchObject({ shared: true, receiptId });
    expectError(await rights.decision(mine.requestId, secret), 'no-such-decision');
    expect((await rights.decision(theirs.requestId, secret)).status).toBe(200);
    expect((await rights.visit({ signals })).answer.confidence).toBe(0.99);
  });

  it('keeps an open contest with its decision, and an override: a forged fingerprint must not destroy a defence', async () => {
    const device = 'e'.repeat(32);
    const contested = await rights.visit({ bot: true, device });
    const overturned = await rights.visit({ bot: true, device });
    const subject = await rights.as({ gpd_role: 'subject', gpd_visitor: contested.visitorId });
    const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita' });
    const file = async (requestId: string) =>
      (await rights.call('/privacy/contest', { requestId }, subject)).json() as { contestId: string };
    await file(contested.requestId);
    const { contestId } = await file(overturned.requestId);
    const ruling = { contestId, outcome: 'overturned', reason: REASON };
    await rights.call('/privacy/contest/resolve', ruling, reviewer);
    const plain = await rights.visit({ device });
    expect((await rights.me(plain, 'forget')).status).toBe(200);
    expect((await rights.decision(contested.requestId, secret)).json()).toMatchObject({ restricted: true });
    expectError(await rights.decision(plain.requestId, secret), 'no-such-decision');
    // Rows that are kept for a person stay within their reach: the old visitorId finds them without another visit.
    const dsar = await rights.call('/privacy/dsar', {}, subject);
    expect(dsar.json()).toMatchObject({
      decisions: [{ requestId: contested.requestId }],
      contests: [{ requestId: contested.requestId, status: 'open' }],
    });
    expect((await rights.visit({ bot: true, device })).answer.class).toBe('human');
    const [receipt] = await rights.sql('SELECT scopes FROM erasures ORDER BY erased_at DESC LIMIT 1');
    const scopes = JSON.parse(String(receipt?.['scopes'])) as { scope: string }[];
    const retained = { action: 'retained', basis: expect.stringContaining('17(3)(e)') as string };
    for (const scope of ['contests', 'override', 'decisions', 'visitor-index'])
      expect(scopes.find((line) => line.scope === scope)).toMatchObject(retained);
    await rights.call('/privacy/erase', {}, subject);
    expectError(await rights.call('/privacy/dsar', {}, subject), 'no-data');
    expectError(await rights.decision(contested.requestId, secret), 'no-such-decision');
  });
});

it('an export tells all of the device, and the next visit finds nothing of it after a forget', async () => {
  interface Told {
    readonly subject: { readonly reference: string };
    readonly decisions: readonly { readonly requestId: string }[];
    readonly notice: { readonly contact: string };
  }
  const exported = async (visit: Visit): Promise<Told> => {
    const reply = await rights.me(visit, 'export');
    expect([reply.status, reply.headers['cache-control']]).toEqual([200, 'no-store']);
    return reply.json() as Told;
  };
  const device = '1a'.repeat(16);
  const first = await rights.visit({ device });
  const visit = await rights.visit({ device });
  const { subject, decisions, notice } = await exported(visit);
  expect(decisions.map(({ requestId }) => requestId)).toEqual([visit.requestId, first.requestId]);
  expect(notice.contact).not.toBe('');
  const erased = forgottenSchema.parse((await rights.me(visit, 'forget')).json());
  const receipt = `SELECT subject FROM erasures WHERE receipt_id = '${erased.receiptId}'`;
  expect(await rights.sql(receipt)).toEqual([{ subject: subject.reference }]);
  expectError(await rights.me(visit, 'export'), 'no-data');
  expect((await exported(await rights.visit({ device }))).decisions).toHaveLength(1);
});

it('an export is sent without a warning of a leak', async () => {
  const warnings: string[] = [];
  const note = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  const visit = await rights.visit();
  expect((await rights.me(visit, 'export')).status).toBe(200);
  expect(warnings).toEqual([]);
});

describe('view', () => {
  it('has nothing to show unless the tenant keeps summaries', async () => {
    expectError(await rights.me(await rights.visit(), 'view'), 'no-retained-data');
  });

  describe('where the tenant keeps summaries', () => {
    const summaryRights = started(() => startRights());
    beforeAll(async () => {
      await keepSummaries(summaryRights);
    });

    it('tells bands while few devices are known, never a value or the visitorId, and bits once enough are', async () => {
      const visit = await summaryRights.visit();
      const reply = await summaryRights.me(visit, 'view');
      const view = transparencyViewSchema.strict().parse(reply.json());
      const purposes = ['device-identification'];
      expect(view).toMatchObject({ qualitativeOnly: true, totalEntropyBits: 0, purposes });
      expect(view.signals.length).toBeGreaterThan(5);
      for (const signal of view.signals) {
        expect(signal.entropyBits).toBeUndefined();
        expect(signal.band).toBe(PRIOR[signal.name] ?? 'not enough data');
      }
      expect(reply.text).not.toContain(visit.visitorId);
      expect(reply.text).not.toContain('Win32');

      for (let i = 0; i < 50; i += 1) await summaryRights.visit();
      const viewReply = await summaryRights.me(await summaryRights.visit(), 'view');
      const exact = transparencyViewSchema.parse(viewReply.json());
      expect(exact.qualitativeOnly).toBe(false);
      const bits = new Map(exact.signals.map(({ name, entropyBits }) => [name, entropyBits]));
      // The samples differ in what they draw and in nothing else.
      expect(bits.get('canvas')).toBeGreaterThan(4);
      expect(bits.get('family')).toBeLessThan(0.2);
      expect(exact.totalEntropyBits).toBeGreaterThan(4);
      expect(exact.totalEntropyBits).toBeLessThan(8);
    });

    it('is gone after a forget, and with the token', async () => {
      const visit = await summaryRights.visit();
      await summaryRights.me(visit, 'forget');
      expectError(await summaryRights.me(visit, 'view'), 'no-retained-data');
      const expired = await summaryRights.visit();
      await summaryRights.sql(
        `UPDATE signal_summaries SET expires_at = 1 WHERE request_id = '${expired.requestId}'`,
      );
      expectError(await summaryRights.me(expired, 'view'), 'no-retained-data');
    });
  });
});

describe('linking', () => {
  const session = async (principalId: string): Promise<string> =>
    ((await rights.call('/v1/sessions', { principalId }, secret)).json() as { token: string }).token;
  const link = (visit: { token: unknown; session: string }, token: string, change: object = {}) =>
    rights.call('/v1/principals/link', { token: visit.token }, token, {
      cookie: `gp_session=${visit.session}`,
      origin: ORIGIN,
      ...change,
    });

  /** The ids of the decisions that an account reads. */
  const decisionsOf = async (token: string): Promise<string[]> => {
    const dsar = await rights.call('/privacy/dsar', {}, token);
    const { decisions } = dsar.json() as { decisions: { requestId: string }[] };
    return decisions.map(({ requestId }) => requestId).sort();
  };

  it('links a request with the principal, again with the same answer, and never with another', async () => {
    const visit = await rights.visit();
    const anna = await session('anna');
    const first = await link(visit, anna);
    expect(first.status).toBe(201);
    expect(first.json()).toMatchObject({ principalId: 'anna', requestId: visit.requestId });
    expect((await link(visit, anna)).text).toBe(first.text);
    expectError(await link(visit, await session('ben')), 'claimed-by-another');
  });

  it('is deleted with the principal, and the receipt says so: a restore would leave no link either', async () => {
    const visit = await rights.visit();
    const dora = await session('dora');
    expect((await link(visit, dora)).status).toBe(201);
    const receipt = (await rights.call('/v1/principals/erase', {}, dora)).json() as {
      scopes: readonly { readonly scope: string }[];
    };
    expect(receipt.scopes.find(({ scope }) => scope === 'links')).toMatchObject({
      action: 'erased',
      count: 1,
    });
    expect((await rights.decision(visit.requestId, secret)).status).toBe(200);
    expect((await link(visit, await session('ben'))).status).toBe(201);
  });

  it('refuses a token of another browser, a key, and another tenant’s session', async () => {
    const visit = await rights.visit();
    const anna = await session('anna');
    expectError(await link(visit, anna, { cookie: 'gp_session=other' }), 'unauthenticated');
    expectError(await link(visit, anna, { origin: 'https://evil.example' }), 'unauthenticated');
    expectError(await link({ ...visit, token: 'x' }, anna), 'unauthenticated');
    for (const token of [undefined, null, 7, '', 'x'.repeat(5000)])
      expectError(await link({ ...visit, token }, anna), 'unauthenticated');
    expectError(await link(visit, secret), 'secret-key-in-page');
    expectError(await link(visit, ''), 'unauthenticated');
    const foreign = await rights.visit({ target: rights.other });
    expectError(await link(foreign, anna), 'unauthenticated');
  });

  it('of a later bundle reaches nothing that this one superseded: its session may have been copied', async () => {
    const theirs = await rights.visit();
    const later = await rights.visit({ after: theirs });
    expect((await link(later, await session('thea'))).status).toBe(201);
    const token = await rights.as({ gpd_role: 'subject', sub: 'thea' });
    expect(await decisionsOf(token)).toEqual([later.requestId]);
    const contest = { requestId: theirs.requestId };
    expectError(await rights.call('/privacy/contest', contest, token), 'not-your-decision');
    expect((await rights.call('/privacy/erase', {}, token)).status).toBe(200);
    expectError(await rights.decision(later.requestId, secret), 'no-such-decision');
    expect((await rights.decision(theirs.requestId, secret)).status).toBe(200);
  });

  it('reaches the linked requests alone: another person has the same phone', async () => {
    const device = 'f'.repeat(32);
    const mine = await rights.visit({ device });
    const alsoMine = await rights.visit();
    const theirs = await rights.visit({ device });
    const cleo = await session('cleo');
    for (const visit of [mine, alsoMine]) expect((await link(visit, cleo)).status).toBe(201);
    const token = await rights.as({ gpd_role: 'subject', sub: 'cleo' });
    expect(await decisionsOf(token)).toEqual([mine.requestId, alsoMine.requestId].sort());
    const contest = { requestId: theirs.requestId };
    expectError(await rights.call('/privacy/contest', contest, token), 'not-your-decision');
    const receipt = (await rights.call('/privacy/erase', {}, token)).json();
    expect(receipt).toMatchObject({ incomplete: false, requestedBy: 'subject' });
    expectError(await rights.decision(mine.requestId, secret), 'no-such-decision');
    expect((await rights.decision(theirs.requestId, secret)).status).toBe(200);
    expectError(await rights.call('/privacy/dsar', {}, token), 'subject-not-identified');
  });
});

describe('the bucket `privacy`', () => {
  it('is one for /me and /privacy, and says when', async () => {
    const limited = await startRights({ settings: { GPD_RATE_PRIVACY: '3/60' } });
    const visit = await limited.visit();
    for (let i = 0; i < 2; i += 1) expectError(await limited.me(visit, 'view'), 'no-retained-data');
    expectError(await limited.call('/privacy/dsar', {}), 'unauthenticated');
    const privacy = ['contest', 'contest/resolve', 'dsar', 'erase'].map((name) => `/privacy/${name}`);
    for (const path of ['/me', '/case', '/case/answer', ...privacy]) {
      const reply = await limited.call(path, {});
      expectError(reply, 'rate-limited');
      expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0);
    }
    const reply = await post(limited.gpd.url, createBundle(limited.acme));
    expectCore(reply, 'ok');
    sessionOf(reply);
    await limited.stop();
  });
});
