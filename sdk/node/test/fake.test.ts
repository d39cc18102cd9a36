import { describe, expect, test } from 'vitest';
import { FakeConsent } from '../src/fake.ts';

const CHECK = { principalId: 'u-1', purpose: 'newsletter' };
const WRITE = { principalId: 'u-1', purposes: ['newsletter'] };

describe('the fake', () => {
  test('allows nothing that was not granted', async () => {
    const fake = new FakeConsent();
    expect(await fake.isAllowed(CHECK)).toBe(false);
    expect(await fake.canProcess(CHECK)).toMatchObject({ reason: 'never-asked' });
    await fake.grant(WRITE);
    expect(await fake.isAllowed(CHECK)).toBe(true);
    expect(await fake.isAllowed({ ...CHECK, principalId: 'u-2' })).toBe(false);
    expect(await fake.isAllowed({ ...CHECK, purpose: 'support' })).toBe(false);
  });

  test('follows the last word, and tells it as state and history', async () => {
    const fake = new FakeConsent();
    await fake.grant(WRITE);
    const { seq, hash } = await fake.withdraw(WRITE);
    expect(await fake.canProcess(CHECK)).toMatchObject({ reason: 'withdrawn', proof: { seq, hash } });
    await fake.deny(WRITE);
    expect(await fake.canProcessMany([CHECK])).toMatchObject([{ allowed: false, reason: 'denied' }]);
    expect((await fake.state('u-1')).purposes).toMatchObject([{ purpose: 'newsletter', choice: 'denied' }]);
    const page = await fake.history('u-1', { limit: 2 });
    expect(page.events.map(({ type }) => type)).toEqual(['consent.denied', 'consent.withdrawn']);
    const rest = await fake.history('u-1', { limit: 2, cursor: page.nextCursor ?? '' });
    expect(rest.events.map(({ type }) => type)).toEqual(['consent.granted']);
    expect(rest.nextCursor).toBeNull();
  });

  test('fails as a server that is gone', async () => {
    const fake = new FakeConsent();
    await fake.grant(WRITE);
    fake.setUnavailable(true);
    expect(await fake.canProcess(CHECK)).toMatchObject({
      allowed: false,
      reason: 'unavailable',
      proof: null,
      error: { kind: 'network' },
    });
    await expect(fake.grant(WRITE)).rejects.toMatchObject({ kind: 'network' });
    fake.setUnavailable(false);
    expect(await fake.isAllowed(CHECK)).toBe(true);
    const strict = new FakeConsent({ onUnavailable: 'error' });
    strict.setUnavailable(true);
    await expect(strict.isAllowed(CHECK)).rejects.toMatchObject({ kind: 'network' });
  });

  test('refuses what the client refuses', async () => {
    const fake = new FakeConsent();
    await expect(fake.isAllowed({ principalId: '', purpose: 'a' })).rejects.toMatchObject({
      kind: 'invalid-request',
    });
    await expect(fake.receipt(1)).rejects.toMatchObject({ kind: 'not-found' });
    await expect(fake.decision('req_1')).rejects.toMatchObject({ kind: 'not-found' });
    await fake.close();
    await expect(fake.ping()).rejects.toMatchObject({ kind: 'config', code: 'closed' });
  });

  test('answers the verdicts that it was given, and remembers its calls', async () => {
    const fake = new FakeConsent();
    fake.setDecision('req_1', { class: 'undeclared_automation', suspectScore: 0.9 });
    expect(await fake.decision('req_1')).toMatchObject({
      requestId: 'req_1',
      class: 'undeclared_automation',
    });
    await fake.isAllowed(CHECK);
    expect(fake.calls).toEqual([
      { method: 'decision', args: ['req_1'] },
      { method: 'isAllowed', args: [CHECK] },
    ]);
  });

  test('stores an outcome once, of a decision that it was given', async () => {
    const fake = new FakeConsent();
    const missing = { kind: 'not-found', code: 'no-such-decision', status: 404 };
    await expect(fake.reportOutcome('req_1', 'fraud')).rejects.toMatchObject(missing);
    fake.setDecision('req_1', {});
    const stored = { requestId: 'req_1', outcome: 'fraud', at: '2026-05-04T10:00:00.000Z' };
    expect(await fake.reportOutcome('req_1', 'fraud', { at: stored.at })).toEqual(stored);
    expect(await fake.reportOutcome('req_1', 'fraud')).toEqual(stored);
    const conflict = { kind: 'conflict', code: 'idempotency-conflict', status: 409 };
    await expect(fake.reportOutcome('req_1', 'other')).rejects.toMatchObject(conflict);
    await expect(fake.reportOutcome('req_1', 'fraud', { at: '2026' })).rejects.toMatchObject(conflict);
    await expect(fake.reportOutcome('req_1', '')).rejects.toMatchObject({ kind: 'invalid-request' });
    expect(fake.calls.at(-1)).toEqual({ method: 'reportOutcome', args: ['req_1', 'fraud', { at: '2026' }] });
    fake.setUnavailable(true);
    await expect(fake.reportOutcome('req_1', 'fraud')).rejects.toMatchObject({ kind: 'network' });
  });

  test('fails once as it was told, and denies or raises as the client does', async () => {
    const fake = new FakeConsent();
    fake.setNextError('server');
    expect(await fake.canProcess(CHECK)).toMatchObject({ reason: 'unavailable', error: { status: 500 } });
    fake.setNextError('not-found');
    await expect(fake.isAllowed(CHECK)).rejects.toMatchObject({ kind: 'not-found', status: 404 });
    fake.setNextError('rate-limited', { retryAfterSeconds: 9 });
    await expect(fake.grant(WRITE)).rejects.toMatchObject({ kind: 'rate-limited', retryAfterSeconds: 9 });
    expect((await fake.grant(WRITE)).entries).toHaveLength(1);
  });

  test('lets a grant expire by its clock, and knows only the purposes that it was given', async () => {
    let now = Date.parse('2026-05-04T10:00:00Z');
    const fake = new FakeConsent({ now: () => now });
    fake.setTtlDays('newsletter', 30);
    await fake.grant(WRITE);
    expect(await fake.canProcess(CHECK)).toMatchObject({ expiresAt: '2026-06-03T10:00:00.000Z' });
    now += 30 * 86_400_000;
    expect(await fake.canProcess(CHECK)).toMatchObject({ allowed: false, reason: 'expired' });
    fake.setPurposes(['support']);
    expect(await fake.canProcess(CHECK)).toMatchObject({ reason: 'unknown-purpose' });
    await expect(fake.grant(WRITE)).rejects.toMatchObject({ code: 'unknown-purpose', status: 422 });
  });

  test('refuses what the server refuses', async () => {
    const fake = new FakeConsent();
    const refused = { kind: 'invalid-request', status: 400 };
    await expect(fake.grant({ principalId: 'u-1', purposes: ['a', 'a'] })).rejects.toMatchObject(refused);
    await expect(fake.grant({ principalId: 'u-1', purposes: ['No!'] })).rejects.toMatchObject(refused);
    await expect(fake.history('u-1', { limit: 0 })).rejects.toMatchObject(refused);
    await expect(fake.erase('gpd_ps_unknown')).rejects.toMatchObject({ kind: 'unauthenticated' });
  });

  test('joins a browser with an account, whose policies can outdate a grant', async () => {
    const fake = new FakeConsent();
    await fake.grant({ principalId: 'browser', purposes: ['newsletter'] });
    const { token } = await fake.sessions.create('u-1');
    await fake.join(token, { principalId: 'browser', principalSecret: 'secret' });
    expect(await fake.isAllowed(CHECK)).toBe(true);
    await fake.publishPolicy({ text: 'New words', material: true });
    expect(await fake.canProcess(CHECK)).toMatchObject({ reason: 'policy-outdated' });
  });
});
