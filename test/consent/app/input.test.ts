import { describe, expect, it } from 'vitest';
import { expectError } from '../../support/expect.ts';
import { type Ask, ask, JSON_TYPE, type Reply } from '../../support/http.ts';
import { started } from '../../support/started.ts';
import { bearer, PURPOSE, startApi } from './support/api.ts';

/** Bad input, on the hot lane and on the routes behind Express alike. */

const api = started(() => startApi());

const CHECK = '/v1/consent/can-process';
const GRANT = '/v1/consent/grant';
const ROUTES = [CHECK, '/v1/consent/can-process/batch', GRANT, '/v1/consent/state', '/v1/sessions'];
/** These routes know more fields than a good body needs. */
const FIELDS: Readonly<Record<string, string>> = {
  [CHECK]: 'principalId, purpose, minSeq',
  '/v1/consent/state': 'principalId, principalSecret',
  [GRANT]: 'principalId, purposes, policyVersion, gpc, principalSecret, overGpc, definitions',
};
const MAX = 32_768;

function send(path: string, body: string | Uint8Array, options: Omit<Ask, 'body'> = {}): Promise<Reply> {
  const headers = { ...JSON_TYPE, ...bearer(api.keys.secret), ...options.headers };
  return ask(api.gpd.url, path, { method: 'POST', ...options, headers, body });
}

/** A good body for a person, as the route wants it. */
function bodyFor(path: string, principalId: unknown): Record<string, unknown> {
  if (path.endsWith('/batch')) return { checks: [{ id: '1', principalId, purpose: PURPOSE }] };
  if (path === CHECK) return { principalId, purpose: PURPOSE };
  return path === GRANT ? { principalId, purposes: [PURPOSE] } : { principalId };
}

const text = (path: string, principalId: unknown): string => JSON.stringify(bodyFor(path, principalId));

describe.each(ROUTES)('%s', (path) => {
  it.each([
    ['one character', 'x'],
    ['512 characters', 'x'.repeat(512)],
    ['512 characters outside the BMP', '🐢'.repeat(512)],
    ['markup', '<script>"\'\\'],
  ])('takes a principal id of %s', async (_what, principalId) => {
    expect((await send(path, text(path, principalId))).status).toBeLessThan(300);
  });

  it.each([
    ['no characters', ''],
    ['513 characters', 'x'.repeat(513)],
    ['513 characters outside the BMP', '🐢'.repeat(513)],
    ['a lone high surrogate', 'a\ud83d'],
    ['swapped surrogates', '\udc22\ud83d'],
    ['NUL', 'a\u0000'],
    ['a line break', 'a\nb'],
    ['DEL', 'a\u007f'],
    ['a C1 control', 'a\u0085'],
    ['a list', ['x']],
  ])('refuses a principal id of %s', async (_what, principalId) => {
    expectError(await send(path, text(path, principalId)), 'invalid-request');
  });

  it.each([
    ['nothing', ''],
    ['half of it', '{"principalId":"a"'],
    ['two of it', '{}{}'],
    ['a raw control character', '{"principalId":"a\n"}'],
    ['a byte order mark', '\ufeff{"principalId":"a"}'],
    ['33 levels', `{"principalId":${'['.repeat(33)}${']'.repeat(33)}}`],
    ['10,000 levels', '['.repeat(10_000)],
  ])('refuses %s as JSON', async (_what, body) => {
    expectError(await send(path, body), 'invalid-json');
  });

  it('refuses a key that is there twice, however it is spelled', async () => {
    const good = text(path, 'a');
    const key = Object.keys(bodyFor(path, 'a'))[0] ?? '';
    const again = JSON.stringify(bodyFor(path, 'b')[key]);
    const escaped = `\\u00${key.charCodeAt(0).toString(16)}${key.slice(1)}`;
    for (const name of [key, escaped]) {
      expectError(await send(path, `${good.slice(0, -1)},"${name}":${again}}`), 'invalid-json');
    }
  });

  it.each([
    ['a byte that is none', [0x61, 0xff, 0x62]],
    ['a long form', [0xc0, 0xaf]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['half a character', [0xf0, 0x9f, 0x90]],
  ])('refuses UTF-8 with %s', async (_what, bytes) => {
    const [head = '', tail = ''] = text(path, 'SPLIT').split('SPLIT');
    const body = Buffer.concat([Buffer.from(head), Buffer.from(bytes), Buffer.from(tail)]);
    expectError(await send(path, body), 'invalid-json');
  });

  it.each(['null', '[]', '{}'])('refuses %s, which is JSON of another shape', async (body) => {
    expectError(await send(path, body), 'invalid-request');
  });

  it('refuses a field too many, without repeating what was sent', async () => {
    const reply = await send(path, JSON.stringify({ ...bodyFor(path, 'a'), s3cr3t: 'hunter2' }));
    const { details } = expectError(reply, 'invalid-request');
    expect(details).toEqual([
      `it has an unknown field; its fields are ${FIELDS[path] ?? Object.keys(bodyFor(path, 'a')).join(', ')}`,
    ]);
    expect(reply.text).not.toMatch(/s3cr3t|hunter2/);
  });

  it.each([
    ['text/plain', { 'content-type': 'text/plain' }],
    ['a type that begins alike', { 'content-type': 'application/json5' }],
    ['no type', { 'content-type': '' }],
    ['gzip', { 'content-encoding': 'gzip' }],
    ['a list of encodings', { 'content-encoding': 'identity, gzip' }],
  ])('refuses %s as a media type', async (_what, headers) => {
    expectError(await send(path, text(path, 'a'), { headers }), 'unsupported-media-type');
  });

  it.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json;profile="x"'])(
    'takes %s',
    async (type) => {
      const reply = await send(path, text(path, 'a'), { headers: { 'content-type': type } });
      expect(reply.status).toBeLessThan(300);
    },
  );

  it.each([false, true])('takes 32,768 bytes and no more (chunked: %s)', async (chunked) => {
    const body = text(path, 'a');
    const fill = (size: number): string => body + ' '.repeat(size - body.length);
    expect((await send(path, fill(MAX), { chunked })).status).toBeLessThan(300);
    expectError(await send(path, fill(MAX + 1), { chunked }), 'payload-too-large');
  });
});

it('a refusal names each wrong field and says what to write', async () => {
  const purpose = { id: 'a', title: '', gpc: 'no', ttlDays: 0.5 };
  const headers = bearer(api.keys.operator);
  const body = JSON.stringify({ purposes: [purpose] });
  const refused = await send('/v1/consent/purposes', body, { method: 'PUT', headers });
  expect(expectError(refused, 'invalid-request')).toMatchObject({
    details: [
      'purposes.0.title: at least 1 character',
      'purposes.0.gpc: write opt-out or ask or ignore',
      'purposes.0.ttlDays: write a whole number',
    ],
  });
  const reply = await api.post('/v1/consent/history', { cursor: 'x', limit: 201 });
  expect(expectError(reply, 'invalid-request')).toMatchObject({
    details: ['principalId: is missing', 'cursor: the nextCursor of the page before', 'limit: at most 200'],
  });
});

describe('a purpose', () => {
  const LONGEST = 'a'.repeat(64);
  it.each(['0', 'a-', LONGEST, 'constructor'])('%s is a good id that nobody defined', async (purpose) => {
    expect(await api.check('a', purpose)).toMatchObject({ allowed: false, reason: 'unknown-purpose' });
    const reply = await api.post(GRANT, { principalId: 'a', purposes: [purpose] });
    expectError(reply, 'unknown-purpose');
  });

  it.each(['', 'A', '-a', 'a_b', `${LONGEST}a`, 'a\n'])('%j is no id', async (purpose) => {
    expectError(await api.post(CHECK, { principalId: 'a', purpose }), 'invalid-request');
    expectError(await api.post(GRANT, { principalId: 'a', purposes: [purpose] }), 'invalid-request');
  });

  it('one that is unknown refuses the whole write', async () => {
    const body = { principalId: 'whole', purposes: [PURPOSE, 'nope', 'nada'] };
    expect(expectError(await api.post(GRANT, body), 'unknown-purpose')).toMatchObject({
      details: ['nope', 'nada'],
    });
    expect(await api.check('whole')).toMatchObject({ reason: 'never-asked' });
  });

  it.each([
    ['none', []],
    ['one twice', [PURPOSE, PURPOSE]],
    ['51', Array.from({ length: 51 }, (_, i) => `p${i}`)],
  ])('%s: refused', async (_what, purposes) => {
    expectError(await api.post(GRANT, { principalId: 'a', purposes }), 'invalid-request');
  });
});

/** ADR 0094: one person whatever keyboard their name was typed on. */
describe('a principalId is compared in NFC', () => {
  const NFC = 'Zo\u00eb \u1e69';
  const NFD = NFC.normalize('NFD');
  const HALF = 'Zo\u00eb s\u0323\u0307';
  const SWAPPED = 'Zo\u00eb s\u0307\u0323';
  const SPELLINGS = [NFC, NFD, HALF, SWAPPED];

  it.each([
    ['NFD', NFD],
    ['half-composed', HALF],
    ['marks in another order', SWAPPED],
  ])('that is withdrawn in another spelling, %s, leaves no grant live', async (_name, other) => {
    await api.write('grant', { principalId: NFC });
    expect(await api.check(other)).toMatchObject({ allowed: true });
    await api.write('withdraw', { principalId: other });
    expect(await api.check(NFC)).toMatchObject({ allowed: false, reason: 'withdrawn' });
  });

  it('is one in a batch, in the state and in the history, and is echoed in NFC', async () => {
    const { seq } = await api.write('grant', { principalId: NFD });
    const checks = SPELLINGS.map((principalId, i) => ({ id: String(i), principalId, purpose: PURPOSE }));
    const batch = await api.post('/v1/consent/can-process/batch', { checks });
    expect((batch.json() as { results: readonly object[] }).results).toMatchObject(
      checks.map(() => ({ allowed: true, proof: { seq } })),
    );
    const state = await api.post('/v1/consent/state', { principalId: NFD });
    expect(state.json()).toMatchObject({ principalId: NFC, purposes: [{ allowed: true }] });
    const history = await api.post('/v1/consent/history', { principalId: NFD });
    const { events } = history.json() as { events: readonly { readonly seq: number }[] };
    expect(history.json()).toMatchObject({ principalId: NFC });
    expect(events[0]).toMatchObject({ seq, type: 'consent.granted' });
  });

  it('is one in a session, which reaches what every spelling wrote, and erases it', async () => {
    await api.write('grant', { principalId: HALF });
    const opened = await api.post('/v1/sessions', { principalId: NFD });
    expect(opened.json()).toMatchObject({ principalId: NFC });
    const { token } = opened.json() as { token: string };
    for (const principalId of SPELLINGS) {
      const state = await api.post('/v1/consent/state', { principalId }, token);
      expect(state.json()).toMatchObject({ purposes: [{ allowed: true }] });
    }
    expect((await api.post('/v1/principals/erase', {}, token)).status).toBe(200);
    for (const principalId of SPELLINGS)
      expect(await api.check(principalId)).toMatchObject({ allowed: false, reason: 'erased' });
  });
});
