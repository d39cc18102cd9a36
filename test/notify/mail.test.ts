import type { SMTPServerOptions } from 'smtp-server';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Mail, parseRelay, type Relay, sendMail } from '../../src/egress/smtp.ts';
import { DAY, HOUR } from '../../src/lib/clock.ts';
import { startDispatcher } from '../../src/notify/dispatcher-service.ts';
import { mailText } from '../../src/notify/mail-words-files.ts';
import { type Notice, notify } from '../../src/notify/notify-service.ts';
import type { Tenant } from '../../src/tenants/tenant.ts';
import { open } from '../rights/support/eraser.ts';
import { ORIGIN } from '../support/constants.ts';
import { initGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import { startMailedRights } from './support/mailed-rights.ts';
import { readAll, startRelay } from './support/relay.ts';

/** Notices by mail, to a real SMTP server. */

const DPO = 'dora@acme.example';
const ANNA = 'anna@person.example';
/** The host of the first origin. */
const SITE = new URL(ORIGIN).host;
const subjectOf = (key: string): string => `${SITE}: ${mailText('en', key)}`;
const STATEMENT = 'My screen reader drives this browser.';
const QUESTION = 'Which screen reader do you use?';
const REPLY = 'It is called Orca.';
const REASON = 'The screen reader explains what the rules saw.';

describe('a contest', () => {
  const server = started(() => startMailedRights(`notify.email=${DPO}`));

  const subjectsTo = (address: string): string[] =>
    server.relay.mails
      .filter(({ to }) => to.includes(address))
      .map(({ subject }) => subject)
      .sort();

  it('is told step by step to staff and to the person, and no mail holds a word of it', async () => {
    const visit = await server.rights.visit({ bot: true });
    const body = { statement: STATEMENT, email: ANNA };
    const filed = await server.rights.me(visit, 'contest', { body });
    const { contestId, caseKey } = filed.json() as { contestId: string; caseKey: string };
    // The first mail of the hour names the newest event, so it has to leave before the next one.
    await expect.poll(() => subjectsTo(DPO)).toHaveLength(1);
    await server.rights.gpd.json(['contests', 'ask', contestId, '--question', QUESTION]);
    await expect.poll(() => subjectsTo(ANNA)).toHaveLength(1);
    await server.rights.call('/case/answer', { caseKey, answer: REPLY });
    await server.rights.gpd.json(['contests', 'extend', contestId, '--days', '30', '--reason', REASON]);
    await expect.poll(() => subjectsTo(ANNA)).toHaveLength(2);
    for (const remainingMs of [DAY, -HOUR]) {
      const before = subjectsTo(ANNA).length;
      await server.rights.sql(
        `UPDATE contests SET due_at = ${Date.now() + remainingMs} WHERE contest_id = '${contestId}'`,
      );
      await expect.poll(() => subjectsTo(ANNA).length).toBe(before + 1);
    }
    const ruling = ['--outcome', 'overturned', '--reason', REASON, '--yes'];
    await server.rights.gpd.json(['contests', 'resolve', contestId, ...ruling]);
    const person = ['asked', 'due-soon', 'extended', 'overdue', 'resolved'];
    const words = person.map((name) => subjectOf(`person.contest.${name}`)).sort();
    await expect.poll(() => subjectsTo(ANNA)).toEqual(words);
    // All else waits for the mail of the next hour.
    expect(subjectsTo(DPO)).toEqual([subjectOf('contest.filed')]);

    for (const { to, text } of server.relay.mails) {
      expect(to).toHaveLength(1);
      expect(text).toContain(`Number: ${contestId}`);
      const link = to[0] === ANNA ? '/case' : `/console/contests/${contestId}`;
      expect(text).toContain(`${server.rights.gpd.url}${link}\r\n`);
      for (const secret of [STATEMENT, QUESTION, REPLY, REASON, caseKey, visit.requestId, visit.visitorId])
        expect(text).not.toContain(secret);
      if (to[0] === DPO) expect(text).not.toContain(ANNA);
    }
    expect(new Set(server.relay.mails.map(({ text }) => /^Message-ID: (.*)$/im.exec(text)?.[1])).size).toBe(
      6,
    );
  });

  it('leaves no address in the outbox', async () => {
    const rows = await server.rights.sql("SELECT * FROM webhook_outbox WHERE webhook LIKE 'mail%'");
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toMatch(/anna|dora/);
  });
});

async function withPlace(
  work: (place: Awaited<ReturnType<typeof createPlace>>) => Promise<void>,
  settings: object = {},
): Promise<void> {
  const place = await createPlace(settings);
  await work(place);
  expect(place.faults).toEqual([]);
  await place.database.close();
}

async function createPlace(settings: object) {
  const { dataDir } = await initGpd();
  const store = await open(dataDir);
  const { database } = store;
  let now = Date.parse('2026-11-20T10:00:00Z');
  const over = { 'notify.email': [DPO], ...settings };
  const tenant = { ...store.tenant, settings: { ...store.tenant.settings, ...over } } as Tenant;
  const faults: unknown[] = [];
  let looks = 0;
  const node = (relay: Relay) =>
    startDispatcher(
      {
        database,
        tenants: {
          masterKey: () => {
            throw new Error('no webhook is called');
          },
          all: () => [tenant],
          hasWebhooks: () => {
            looks += 1;
            return true;
          },
        },
        clock: () => now,
        tenantOf: () => tenant,
        findDecision: () => Promise.resolve(null),
        mail: {
          send: (mail) => sendMail(relay, mail),
          from: null,
          origin: () => 'https://gpd.example',
          findContest: async () => null,
        },
        onFault: (error) => faults.push(error),
      },
      5,
    );
  const rows = (): Promise<{ state: string; failure: string | null; attempts: number }[]> =>
    database.read('webhook_outbox').orderBy('seq') as never;
  return {
    database,
    faults,
    tenant,
    rows,
    states: async () => (await rows()).map(({ state }) => state),
    /** Returns when the dispatchers have looked for work a few times. */
    looked: async () => {
      const looksBefore = looks;
      await vi.waitFor(() => expect(looks).toBeGreaterThan(looksBefore + 4), QUICK);
    },
    tell: (notice: Notice, about = tenant) => database.transaction((tx) => notify(tx, about, notice)),
    advance: (ms: number) => {
      now += ms;
    },
    /** The dispatchers of nodes with this relay until `done` holds. */
    run: async (relay: Relay, done: () => Promise<void>, nodes = 1) => {
      const dispatchers = Array.from({ length: nodes }, () => node(relay));
      try {
        await done();
      } finally {
        for (const dispatcher of dispatchers) await dispatcher.stop();
      }
    },
  };
}

const QUICK = { interval: 5, timeout: 10_000 };
const NOTICE: Notice = { event: 'backup.failed', data: {}, at: Date.parse('2026-11-20T09:59:00Z') };
const ERASURE: Notice = { ...NOTICE, event: 'erasure.incomplete', number: 'era_1' };

describe('the relay', () => {
  let relay: Awaited<ReturnType<typeof startRelay>>;
  beforeAll(async () => {
    relay = await startRelay();
  });
  beforeEach(() => void relay.mails.splice(0));
  afterAll(() => relay.stop());

  it.each([
    ['erasure.incomplete', '/console/receipts/no_1'],
    ['export.ready', '/console/subjects'],
    ['backup.failed', '/console/overview'],
    ['log.fork', '/console/ledger'],
  ] as const)('gets what happened and where to look: %s', (event, link) =>
    withPlace(async ({ tell, run }) => {
      const data = { reason: 'what the webhook says', refused: 'a note' };
      await tell({ ...NOTICE, event, data, number: 'no_1' });
      await run(parseRelay(relay.url), () => vi.waitFor(() => expect(relay.mails).toHaveLength(1), QUICK));
      const [{ to, text } = { to: [], text: '' }] = relay.mails;
      expect(to).toEqual([DPO]);
      expect(text).toContain(`Subject: ${subjectOf(event)}\r\n`);
      expect(text).toContain(`https://gpd.example${link}\r\n`);
      expect(text).not.toMatch(/what the webhook says|a note/);
    }),
  );

  it('away for a day loses nothing and is sent nothing twice', () =>
    withPlace(async ({ tell, run, rows, states, advance }) => {
      const off = await startRelay();
      await off.stop();
      for (let i = 0; i < 3; i += 1) await tell(ERASURE);
      await run(parseRelay(off.url), () =>
        vi.waitFor(async () => {
          advance(HOUR / 2);
          const waiting = await rows();
          expect(waiting.map(({ state }) => state)).not.toContain('failed');
          expect(Math.min(...waiting.map(({ attempts }) => attempts))).toBe(9);
          expect(waiting[0]?.failure).toContain('ECONNREFUSED');
        }, QUICK),
      );
      advance(30 * HOUR);
      await run(parseRelay(relay.url), () =>
        vi.waitFor(async () => expect(await states()).toEqual(Array(3).fill('delivered')), QUICK),
      );
      expect(relay.mails).toHaveLength(1);
      expect(relay.mails[0]?.text).toContain(`Subject: ${SITE}: 3 notices`);
      expect(JSON.stringify(await rows())).not.toContain(DPO);
    }));

  it.each([
    ['that offers no STARTTLS', { hideSTARTTLS: true, disabledCommands: ['STARTTLS', 'AUTH'] }, 'starttls'],
    ['whose certificate nobody signed', {}, 'starttls'],
    ['whose certificate nobody signed', { secure: true }, 'tls'],
  ] as const)('%s receives nothing, and the mail waits', (_what, options, mode) =>
    withPlace(async ({ tell, run, rows }) => {
      const bare = await startRelay(options as SMTPServerOptions);
      await tell(ERASURE);
      await run({ ...parseRelay(bare.url), mode }, () =>
        vi.waitFor(async () => {
          expect(await rows()).toMatchObject([{ state: 'waiting', failure: expect.stringMatching(/relay/) }]);
        }, QUICK),
      );
      await bare.stop();
      expect(bare.mails).toEqual([]);
    }),
  );

  it('that dies between its answer and ours gets the same Message-ID again', () =>
    withPlace(async ({ tell, run, rows, advance }) => {
      const ids: string[] = [];
      let dies = true;
      const flaky = await startRelay({
        async onData(stream, session, done) {
          ids.push(/^Message-ID: (.*)$/im.exec(await readAll(stream))?.[1] ?? '');
          if (!dies) return done();
          dies = false;
          (session as unknown as { connection?: unknown }).connection = null;
          return done(Object.assign(new Error('shutting down'), { responseCode: 421 }));
        },
      });
      await tell(ERASURE);
      await run(parseRelay(flaky.url), async () => {
        await vi.waitFor(
          async () => expect((await rows())[0]?.failure).toBe('the relay answered 421'),
          QUICK,
        );
        advance(HOUR);
        await vi.waitFor(async () => expect((await rows())[0]?.state).toBe('delivered'), QUICK);
      });
      await flaky.stop();
      expect(ids).toHaveLength(2);
      expect(new Set(ids).size).toBe(1);
    }));

  it('that refuses an address holds up no other, and its words are kept nowhere', () =>
    withPlace(
      async ({ tell, run, rows }) => {
        const picky = await startRelay({
          onRcptTo({ address }, _session, done) {
            const no = Object.assign(new Error(`no such user ${address}`), { responseCode: 550 });
            done(address.startsWith('gone') ? no : null);
          },
        });
        await tell(NOTICE);
        await run(parseRelay(picky.url), () =>
          vi.waitFor(async () => {
            expect((await rows()).map(({ state, failure }) => [state, failure])).toEqual([
              ['waiting', 'the relay answered 550'],
              ['delivered', null],
            ]);
          }, QUICK),
        );
        await picky.stop();
        expect(picky.mails.map(({ to }) => to)).toEqual([[DPO]]);
      },
      { 'notify.email': ['gone@acme.example', DPO] },
    ));

  it('gets the first notice at once, and all of the next hour as one mail', () =>
    withPlace(
      async ({ tell, run, advance, states, looked }) => {
        const allDelivered = async (count: number): Promise<void> =>
          expect(await states()).toEqual(Array(count).fill('delivered'));
        const erasure = (number: string): Promise<void> => tell({ ...ERASURE, number });
        const work = async (): Promise<void> => {
          await erasure('era_1');
          await vi.waitFor(() => allDelivered(2), QUICK);
          for (const number of ['era_2', 'era_3']) await erasure(number);
          advance(HOUR - 1);
          await erasure('era_4');
          await looked();
          expect(relay.mails).toHaveLength(2);
          advance(1);
          await vi.waitFor(() => allDelivered(8), QUICK);
        };
        await run(parseRelay(relay.url), work, 2);
        for (const address of [DPO, 'other@acme.example']) {
          const texts = relay.mails.filter(({ to }) => to.includes(address)).map(({ text }) => text);
          expect(texts).toHaveLength(2);
          expect(texts[0]).toContain(`Subject: ${subjectOf('erasure.incomplete')}\r\n`);
          expect(texts[1]).toContain(`Subject: ${SITE}: 3 notices`);
          for (const number of ['era_2', 'era_3', 'era_4'])
            expect(texts[1]).toContain(`/console/receipts/${number}`);
          expect(texts[1]).not.toContain('era_1');
        }
      },
      { 'notify.email': [DPO, 'other@acme.example'] },
    ));

  it('is not told of a contest that is gone, nor an addressee who was removed', () =>
    withPlace(async ({ tenant, tell, run, states }) => {
      await tell({ ...ERASURE, event: 'contest.asked', number: 'con_gone' });
      const otherSettings = { ...tenant.settings, 'notify.email': ['old@acme.example'] };
      await tell(ERASURE, { ...tenant, settings: otherSettings });
      await run(parseRelay(relay.url), () =>
        vi.waitFor(async () => expect(await states()).toEqual(['failed', 'waiting']), QUICK),
      );
      expect(relay.mails).toEqual([]);
    }));

  it('on a loopback address alone is used without TLS', () => {
    for (const [url, mode] of [
      ['smtp://127.0.0.1:25', 'plain'],
      ['smtp://[::1]', 'plain'],
      ['smtp://localhost', 'plain'],
      ['smtp://10.0.0.1', 'starttls'],
      ['smtp://relay.example', 'starttls'],
      ['smtps://127.0.0.1', 'tls'],
    ] as const)
      expect(parseRelay(url).mode, url).toBe(mode);
    expect(parseRelay('smtps://a%40b:p%3Aw@relay.example')).toMatchObject({
      port: 465,
      auth: { user: 'a@b', pass: 'p:w' },
    });
  });

  it('without TLS is never another machine, whatever its name resolves to', async () => {
    const text = { from: 'a@b.example', to: DPO, subject: 's', text: 't' };
    const mail: Mail = { ...text, messageId: '<1@b>', date: new Date() };
    const other: Relay = { host: '192.0.2.1', port: 25, mode: 'plain', auth: null };
    await expect(sendMail(other, mail)).rejects.toThrow('not public');
  });
});
