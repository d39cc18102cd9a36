import { createCipheriv } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { DAY } from '../../../src/lib/clock.ts';
import { hmacSha256, sha256 } from '../../../src/lib/crypto.ts';
import { issueToken, openToken, TOKEN_TTL_MS } from '../../../src/rights/me/transparency.ts';
import { NOW, seededRandom } from '../../support/make.ts';
import { fc } from '../../support/property.ts';

const SECRET = Buffer.alloc(32, 3);
const random = seededRandom('test/rights/transparency-token');
const subject = { kid: 'acme', requestId: 'req_01KAG0000000000000000000AA' };
const binding = { session: 'c2Vzc2lvbg', origin: 'https://shop.example' };

const issue = (now = NOW): string => issueToken(SECRET, random, now, subject, binding);
const token = issue();

describe('a transparency token', () => {
  it('opens in its session, at its origin, until five minutes are over', () => {
    expect(TOKEN_TTL_MS).toBe(300_000);
    expect(openToken(SECRET, NOW, token, binding)).toEqual(subject);
    expect(openToken(SECRET, NOW + 299_999, token, binding)).toEqual(subject);
    expect(openToken(SECRET, NOW + 300_000, token, binding)).toBeNull();
  });

  it('does not open for longer, though the clock was ahead when it was made', () => {
    expect(openToken(SECRET, NOW - 3_600_000, token, binding)).toBeNull();
    expect(openToken(SECRET, NOW - 30_000, token, binding)).toEqual(subject);
  });

  it('opens past midnight: its day is its own', () => {
    const midnight = Math.ceil(NOW / DAY) * DAY;
    const lateToken = issue(midnight - 1);
    expect(openToken(SECRET, midnight + 60_000, lateToken, binding)).toEqual(subject);
    expect(openToken(SECRET, midnight - 1 + TOKEN_TTL_MS, lateToken, binding)).toBeNull();
  });

  it.each<[string, typeof binding]>([
    ['another session', { ...binding, session: 'another' }],
    ['no session', { ...binding, session: '' }],
    ['another origin', { ...binding, origin: 'https://evil.example' }],
    ['the origin without its port', { ...binding, origin: 'https://shop.example:8443' }],
    ['the origin over http', { ...binding, origin: 'http://shop.example' }],
    ['session and origin in each other’s place', { session: binding.origin, origin: binding.session }],
  ])('does not open in %s', (_what, other) => {
    expect(openToken(SECRET, NOW, token, other)).toBeNull();
  });

  it('does not open on another server, or with a bit changed, the day among them', () => {
    expect(openToken(Buffer.alloc(32, 4), NOW, token, binding)).toBeNull();
    const bytes = Buffer.from(token, 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      expect(openToken(SECRET, NOW, flipped.toString('base64url'), binding), `bit ${bit}`).toBeNull();
    }
  });

  it('does not open cut short, or with more behind it', () => {
    const bytes = Buffer.from(token, 'base64url');
    for (let length = 0; length < bytes.length; length += 1)
      expect(openToken(SECRET, NOW, bytes.subarray(0, length).toString('base64url'), binding)).toBeNull();
    const longer = Buffer.concat([bytes, Buffer.of(0)]).toString('base64url');
    expect(openToken(SECRET, NOW, longer, binding)).toBeNull();
  });

  it('has one spelling', () => {
    const base64 = Buffer.from(token, 'base64url').toString('base64');
    const spellings = [`${token}=`, ` ${token}`, `${token}\n`, base64];
    for (const text of spellings.filter((spelling) => spelling !== token))
      expect(openToken(SECRET, NOW, text, binding), text).toBeNull();
  });

  it('opens nothing, and throws nothing, for any other text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String({ maxLength: 200 })), (text) => {
        expect(openToken(SECRET, NOW, text, binding)).toBeNull();
      }),
    );
  });

  it('opens nothing that is well sealed and says something else', () => {
    const day = Math.floor(NOW / DAY);
    const sealed = (plaintext: string): string => {
      const head = Buffer.alloc(4);
      head.writeUInt32BE(day);
      const iv = random(12);
      const key = hmacSha256(SECRET, `gpd/transparency-token/v1 ${day}`);
      const bound = JSON.stringify([sha256(binding.session).toString('base64url'), binding.origin, day]);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(sha256(bound));
      const parts = [head, iv, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()];
      return Buffer.concat(parts).toString('base64url');
    };
    const good = JSON.stringify(['acme', 'req_1', NOW + 1]);
    expect(openToken(SECRET, NOW, sealed(good), binding)).toEqual({ kid: 'acme', requestId: 'req_1' });
    const otherTexts = ['', 'null', '[]', '{"0":"acme"}', '["acme","req_1"]', '["acme","req_1","9e99"]'];
    for (const text of [...otherTexts, '["acme","req_1",9e999]', `${good} `.repeat(2)])
      expect(openToken(SECRET, NOW, sealed(text), binding), text).toBeNull();
  });

  it('hides what it says, and is never the same twice', () => {
    const bytes = Buffer.from(token, 'base64url');
    for (const text of [subject.kid, subject.requestId, binding.session, binding.origin])
      expect(bytes.includes(text)).toBe(false);
    expect(issue()).not.toBe(issue());
    // It never carries a visitorId: it is as long for everybody.
    expect(new Set(Array.from({ length: 20 }, () => issue().length)).size).toBe(1);
  });
});
