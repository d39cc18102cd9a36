import { expect } from 'vitest';
import type { IngestResponse } from '../../../src/schema/responses.ts';
import { ORIGIN, REASON } from '../../support/constants.ts';
import { expectCore, INGEST, sessionOf } from '../../support/expect.ts';
import type { Reply } from '../../support/http.ts';
import { fc } from '../../support/property.ts';
import { browserHeaders, desktopChrome, headlessChrome } from '../../support/samples.ts';
import { createBundle, createNonce } from '../../support/seal.ts';
import { type Device, forgetDevice, type Model, type Person, type Real, type Request } from './world.ts';

/**
 * Any order of commands is possible; each command asks the application and compares the answer with the
 * oracle.
 */

type Command = fc.AsyncCommand<Model, Real>;

const PURPOSE = 'device-identification';
const LENGTH = 256;
/** Among the devices. */
const BOT = 2;

/** Number of runs for each command. */
export const ran = new Map<string, number>();

function command(
  name: string,
  check: (model: Model) => boolean,
  run: (model: Model, real: Real) => Promise<void>,
): Command {
  const counted: Command['run'] = async (model, real) => {
    await run(model, real);
    const kind = name.replace(/\(.*/, '');
    ran.set(kind, (ran.get(kind) ?? 0) + 1);
  };
  return { check, run: counted, toString: () => name };
}

const pick = <T>(items: readonly T[], i: number): T => items[i % items.length] as T;
/** Mostly of the last few, so that commands meet each other's doing; now and then any. */
function pickRequest(model: Model, i: number): Request {
  const { requests } = model;
  const recent = requests.slice(-3);
  return i % 4 === 0 ? pick(requests, i) : pick(recent, i);
}
const hasRequests = (model: Model): boolean => model.requests.length > 0;

function expectRefused(reply: Reply, status: number, error: string): void {
  expect({ status: reply.status, body: reply.json() }).toMatchObject({ status, body: { error } });
}

const signalsOf = ({ bot, name }: Device): ReturnType<typeof desktopChrome> =>
  bot ? headlessChrome(name) : desktopChrome(name);

const ingest = (real: Real, bundle: unknown): Promise<Reply> =>
  real.post(INGEST, bundle, '', browserHeaders(ORIGIN));

function remember(model: Model, device: Device, reply: Reply, bundle: Request['bundle']): void {
  const answer: IngestResponse = expectCore(reply, 'ok');
  const expected = device.bot && !device.override ? 'undeclared_automation' : 'human';
  expect(answer).toMatchObject({
    class: expected,
    confidence: device.seen ? 0.99 : 0.6,
    smartSignals: { bot: expected !== 'human', incognito: false },
  });
  if (device.visitorId !== '') expect(answer.visitorId).toBe(device.visitorId);
  device.visitorId = answer.visitorId ?? '';
  device.seen = true;
  device.reached = true;
  model.requests.push({
    requestId: answer.requestId,
    device,
    bundle,
    token: answer.transparencyToken ?? '',
    session: sessionOf(reply),
    class: expected,
    alive: true,
    contest: null,
  });
}

const visit = (i: number): Command =>
  command(
    `visit(${i})`,
    () => true,
    async (model, real) => {
      const device = pick(model.devices, i);
      const bundle = createBundle(real.target, { signals: signalsOf(device) });
      remember(model, device, await ingest(real, bundle), bundle);
    },
  );

/** Two bundles with one nonce at once: one is taken. */
const clash = (i: number): Command =>
  command(
    `clash(${i})`,
    () => true,
    async (model, real) => {
      const device = pick(model.devices, i);
      const nonce = createNonce();
      const bundles = [0, 1].map(() => createBundle(real.target, { nonce, signals: signalsOf(device) }));
      const replies = await Promise.all(bundles.map((bundle) => ingest(real, bundle)));
      expect(replies.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 409]);
      const won = replies.findIndex(({ status }) => status === 200);
      remember(model, device, replies[won] as Reply, bundles[won] as Request['bundle']);
    },
  );

const replay = (i: number): Command =>
  command(`replay(${i})`, hasRequests, async (model, real) => {
    expectCore(await ingest(real, pickRequest(model, i).bundle), 'replay');
  });

const decision = (i: number): Command =>
  command(`decision(${i})`, hasRequests, async (model, real) => {
    const { requestId, alive, contest, class: verdict } = pickRequest(model, i);
    const reply = await real.get(`/v1/decisions/${requestId}`);
    if (!alive) expectRefused(reply, 404, 'no-such-decision');
    else
      expect({ status: reply.status, body: reply.json() }).toMatchObject({
        status: 200,
        body: {
          requestId,
          // A confirmed human is never labelled a bot afterwards (interface section 3).
          class: contest?.outcome === 'overturned' ? 'human' : verdict,
          restricted: contest?.outcome === null,
        },
      });
  });

const CHOICES = { grant: 'granted', deny: 'denied', withdraw: 'withdrawn' } as const;

const choose = (i: number, action: keyof typeof CHOICES): Command =>
  command(
    `${action}(${i})`,
    () => true,
    async (model, real) => {
      const person = pick(model.people, i);
      const { principalId } = person;
      const reply = await real.post(`/v1/consent/${action}`, { principalId, purposes: [PURPOSE] });
      expect(reply.status).toBe(201);
      const { seq, hash } = reply.json() as { seq: number; hash: string };
      expect(seq).toBe(model.log);
      model.log += 1;
      person.keyed = true;
      // After an erasure only a grant begins anew.
      if (person.reason === 'erased' && action !== 'grant') return;
      person.reason = CHOICES[action];
      person.place = { seq, hash };
    },
  );

async function expectCheck(model: Model, real: Real, person: Person): Promise<void> {
  const { principalId, reason, place } = person;
  const reply = await real.post('/v1/consent/can-process', { principalId, purpose: PURPOSE });
  expect({ status: reply.status, body: reply.json() }).toMatchObject({
    status: 200,
    body: {
      allowed: reason === 'granted',
      reason,
      // `never-asked` and `erased` carry the head's (contract section 7).
      proof: reason === 'never-asked' || reason === 'erased' ? { seq: model.log - 1 } : (place ?? {}),
    },
  });
}

const canProcess = (i: number): Command =>
  command(
    `can-process(${i})`,
    () => true,
    (model, real) => expectCheck(model, real, pick(model.people, i)),
  );

const shred = (i: number): Command =>
  command(
    `erase principal(${i})`,
    () => true,
    async (model, real) => {
      const person = pick(model.people, i);
      const { principalId } = person;
      const opened = await real.post('/v1/sessions', { principalId });
      const { token } = opened.json() as { token: string };
      const reply = await real.post('/v1/principals/erase', {}, token);
      expect({ status: reply.status, body: reply.json() }).toMatchObject({
        status: 200,
        body: { incomplete: false },
      });
      // The session went with the person's key, and where there was none nothing went.
      if (person.keyed) {
        model.log += 1;
        person.keyed = false;
        person.reason = 'erased';
        person.place = null;
      }
      await expectCheck(model, real, person);
    },
  );

const contest = (i: number): Command =>
  command(`contest(${i})`, hasRequests, async (model, real) => {
    const request = pickRequest(model, i);
    const { requestId, device } = request;
    const reply = await real.post('/privacy/contest', { requestId }, real.subject(device.visitorId));
    if (!request.alive) return expectRefused(reply, 404, 'no-such-decision');
    // The index went with the device: nobody can say any more whose it is.
    if (!device.reached) return expectRefused(reply, 403, 'not-your-decision');
    expect(reply.status).toBe(202);
    const { contestId, outcome } = reply.json() as { contestId: string; outcome: string | null };
    if (request.contest) expect(contestId).toBe(request.contest.contestId);
    request.contest ??= { contestId, outcome: null };
    expect(outcome).toBe(request.contest.outcome);
  });

const resolve = (i: number, outcome: 'upheld' | 'overturned'): Command =>
  command(
    `resolve(${i}, ${outcome})`,
    (model) => model.requests.some((r) => r.contest),
    async (model, real) => {
      const request = pick(
        model.requests.filter((one) => one.contest),
        i,
      );
      const contest = request.contest as NonNullable<Request['contest']>;
      const body = { contestId: contest.contestId, outcome, reason: REASON };
      const reply = await real.post('/privacy/contest/resolve', body, real.staff('reviewer'));
      if (contest.outcome !== null && contest.outcome !== outcome)
        return expectRefused(reply, 409, 'already-resolved');
      expect({ status: reply.status, body: reply.json() }).toMatchObject({
        status: 200,
        body: { status: 'resolved', outcome },
      });
      if (contest.outcome === null && outcome === 'overturned') request.device.override = true;
      contest.outcome = outcome;
    },
  );

/** A person who was taken for a bot, and was heard: what every later answer has to remember. */
const overturn = (): Command =>
  command(
    'overturn',
    () => true,
    async (model, real) => {
      await visit(BOT).run(model, real);
      const last = Math.min(model.requests.length, 3) - 1;
      await contest(last === 0 ? 1 : last).run(model, real);
      const contested = model.requests.filter((request) => request.contest);
      await resolve(contested.length - 1, 'overturned').run(model, real);
    },
  );

const me = (i: number, action: 'view' | 'forget', isOwnSession: boolean): Command =>
  command(
    `me ${action}(${i}${isOwnSession ? '' : ', of another session'})`,
    hasRequests,
    async (model, real) => {
      const { token, session, device, alive } = pickRequest(model, i);
      const cookie = `gp_session=${isOwnSession ? session : createNonce(32)}`;
      const reply = await real.post('/me', { token, action }, '', { cookie, origin: ORIGIN });
      if (!isOwnSession) return expectRefused(reply, 401, 'unauthenticated');
      if (action === 'view') return expectRefused(reply, 404, 'no-retained-data');
      expect({ status: reply.status, body: reply.json() }).toMatchObject({
        status: 200,
        body: { forgotten: true, shared: false, receiptId: expect.stringMatching(/^era_/) as string },
      });
      if (alive) forgetDevice(model, device, { defence: true });
    },
  );

const eraseOwn = (i: number): Command =>
  command(`erase own(${i})`, hasRequests, async (model, real) => {
    const { device } = pickRequest(model, i);
    const reply = await real.post('/privacy/erase', {}, real.subject(device.visitorId));
    expect({ status: reply.status, body: reply.json() }).toMatchObject({
      status: 200,
      body: { incomplete: false },
    });
    if (device.reached) forgetDevice(model, device, { defence: false });
  });

const eraseAsDpo = (i: number): Command =>
  command(`erase as dpo(${i})`, hasRequests, async (model, real) => {
    const { requestId, device, alive } = pickRequest(model, i);
    const reply = await real.post('/privacy/erase', { requestId }, real.staff('dpo'));
    expect(reply.status).toBe(200);
    if (alive) forgetDevice(model, device, { defence: false });
  });

const dsar = (i: number): Command =>
  command(`dsar(${i})`, hasRequests, async (model, real) => {
    const { device } = pickRequest(model, i);
    const reply = await real.post('/privacy/dsar', {}, real.subject(device.visitorId));
    if (!device.reached) return expectRefused(reply, 404, 'no-data');
    expect(reply.status).toBe(200);
    const exported = reply.json() as {
      readonly decisions: readonly { readonly requestId: string }[];
      readonly contests: readonly { readonly contestId: string; readonly outcome: string | null }[];
      readonly override: object | null;
    };
    const ownRequests = model.requests.filter((request) => request.device === device && request.alive);
    expect(exported.decisions.map(({ requestId }) => requestId).sort()).toEqual(
      ownRequests.map(({ requestId }) => requestId).sort(),
    );
    const contests = ownRequests.flatMap((request) => (request.contest ? [request.contest] : []));
    expect(exported.contests.map(({ contestId, outcome }) => `${contestId} ${outcome}`).sort()).toEqual(
      contests.map(({ contestId, outcome }) => `${contestId} ${outcome}`).sort(),
    );
    expect(exported.override !== null).toBe(device.override);
  });

const restart = (): Command =>
  command(
    'restart',
    () => true,
    (_model, real) => real.restart(),
  );

const index = fc.nat({ max: LENGTH });

export const anyCommand: fc.Arbitrary<Command>[] = [
  index.map(visit),
  index.map(visit),
  index.map(clash),
  index.map(replay),
  index.map(decision),
  fc.tuple(index, fc.constantFrom('grant', 'deny', 'withdraw')).map(([i, action]) => choose(i, action)),
  index.map(canProcess),
  index.map(shred),
  index.map(contest),
  fc.tuple(index, fc.constantFrom('upheld', 'overturned')).map(([i, outcome]) => resolve(i, outcome)),
  fc
    .tuple(index, fc.constantFrom('view', 'forget'), fc.boolean())
    .map(([i, action, isOwnSession]) => me(i, action, isOwnSession)),
  fc.constant(overturn()),
  index.map(eraseOwn),
  index.map(eraseAsDpo),
  index.map(dsar),
  fc.constant(restart()),
];
