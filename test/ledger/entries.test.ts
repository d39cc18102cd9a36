import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { CommitmentOpening } from '../../src/ledger/entries.ts';
import {
  addCommitments,
  anchorBody,
  commitVerdict,
  genesisEntry,
  impersonalEntry,
  personalEntry,
} from '../../src/ledger/entries.ts';
import { EMPTY_FRONTIER, EMPTY_ROOT, frontierRoot, leafHash } from '../../src/ledger/merkle.ts';
import { createNoteSigner } from '../../src/ledger/note.ts';
import { treeHead } from '../consent/app/support/naive-log.ts';
import { openPersonalEntry, parseEntry } from '../support/log-reader.ts';
import { fc } from '../support/property.ts';
import { flipBit } from './support.ts';

const AT = Date.UTC(2026, 10, 20, 10, 0, 2, 987);
const opening = {
  key: Buffer.alloc(32, 1),
  salt: Buffer.alloc(16, 2),
  principalId: 'user-1',
  detail: { policyVersion: 3, gpc: false, source: 'secret', expiresAt: '2027-05-19T10:00:02.000Z' },
} satisfies CommitmentOpening;
const head = { type: 'consent.granted', at: AT, purpose: 'analytics' } as const;
const entry = personalEntry(head, opening);

const hmac = (hex: string): string =>
  createHmac('sha256', opening.key).update(Buffer.from(hex, 'hex')).digest('base64url');
const hex = (text: string): string => Buffer.from(text).toString('hex');

describe('a personal entry', () => {
  it('is the bytes of RFC 8785 with the two commitments of the contract', () => {
    const detail = '{"expiresAt":"2027-05-19T10:00:02.000Z","gpc":false,"policyVersion":3,"source":"secret"}';
    const salt = `00000010${'02'.repeat(16)}`;
    const subject = hmac(`0000000e${hex('gpd/subject/v1')}00000006${hex('user-1')}${salt}`);
    const body = hmac(
      `0000000b${hex('gpd/body/v1')}000000${detail.length.toString(16)}${hex(detail)}${salt}`,
    );
    expect(entry.toString()).toBe(
      `{"body":"${body}","purpose":"analytics","subject":"${subject}","time":"2026-11-20T10:00:02Z","type":"consent.granted","v":1}`,
    );
  });

  it('opens with what it was made of and with nothing else', () => {
    expect(openPersonalEntry(entry, opening)).toBe(true);
    const { detail } = opening;
    const variants: Partial<CommitmentOpening>[] = [
      { key: flipBit(opening.key, 9) },
      { salt: flipBit(opening.salt, 9) },
      { principalId: 'user-2' },
      { detail: { ...detail, policyVersion: 4 } },
      { detail: { ...detail, policyVersion: null } },
      { detail: { ...detail, gpc: true } },
      { detail: { ...detail, source: 'session' } },
      { detail: { ...detail, expiresAt: null } },
    ];
    for (const other of variants) {
      expect(openPersonalEntry(entry, { ...opening, ...other }), JSON.stringify(other)).toBe(false);
    }
  });
});

it('a doubt commits to its class and its source alone', () => {
  const doubt = { ...opening, detail: { class: 'undeclared_automation', source: 'ingest' } } as const;
  const entry = personalEntry({ ...head, type: 'consent.doubted' }, doubt);
  const salt = `00000010${'02'.repeat(16)}`;
  const detail = '{"class":"undeclared_automation","source":"ingest"}';
  const length = detail.length.toString(16).padStart(8, '0');
  expect(parseEntry(entry)).toMatchObject({
    type: 'consent.doubted',
    body: hmac(`0000000b${hex('gpd/body/v1')}${length}${hex(detail)}${salt}`),
  });
});

describe('an impersonal entry', () => {
  it('has a clear body and no subject', () => {
    expect(
      impersonalEntry(
        { type: 'policy.published', at: AT, purpose: null },
        { version: 2, hash: 'x' },
      ).toString(),
    ).toBe(
      '{"body":{"hash":"x","version":2},"purpose":null,"time":"2026-11-20T10:00:02Z","type":"policy.published","v":1}',
    );
  });

  it('does not open as a personal one', () => {
    const entry = impersonalEntry({ type: 'purpose.defined', at: AT, purpose: 'a' }, { id: 'a' });
    expect(openPersonalEntry(entry, opening)).toBe(false);
  });

  it('is the genesis with the key and the name of the log', () => {
    const { vkey } = createNoteSigner('consent.example/ledger/shop', Buffer.alloc(32, 3));
    expect(parseEntry(genesisEntry(AT, vkey))).toEqual({
      v: 1,
      type: 'ledger.genesis',
      time: '2026-11-20T10:00:02Z',
      purpose: null,
      body: { key: vkey, origin: 'consent.example/ledger/shop' },
    });
    expect(() => genesisEntry(AT, `${vkey}\n`)).toThrow(TypeError);
  });

  it('is never longer than a bundle can hold', () => {
    const make = (length: number): Buffer =>
      impersonalEntry({ type: 'banner.published', at: AT, purpose: null }, { text: 'x'.repeat(length) });
    const overhead = make(0).length;
    expect(make(65_535 - overhead).length).toBe(65_535);
    expect(() => make(65_536 - overhead)).toThrow(RangeError);
  });
});

describe('a sealed root', () => {
  const treeOf = (commitments: readonly string[]) => addCommitments(EMPTY_FRONTIER, commitments);
  const sealedRoot = (commitments: readonly string[]) => frontierRoot(treeOf(commitments));

  const commitments = Array.from({ length: 13 }, (_, i) =>
    commitVerdict(Buffer.alloc(16, i), 'k', `req_${i}`, '{}'),
  );

  it('is the RFC 6962 root over the raw commitments', () => {
    const leaves = commitments.map((text) => leafHash(Buffer.from(text, 'base64url')));
    expect(sealedRoot(commitments)).toEqual(treeHead(leaves));
    expect(sealedRoot([])).toEqual(EMPTY_ROOT);
    const halves = addCommitments(treeOf(commitments.slice(0, 5)), commitments.slice(5));
    expect(frontierRoot(halves)).toEqual(treeHead(leaves));
  });

  it('refuses what is not base64url', () => {
    for (const bad of ['a', 'a+b/', 'AA=='])
      expect(() => sealedRoot([...commitments, bad]), bad).toThrow(TypeError);
  });

  it('makes the body of an entry', () => {
    const body = anchorBody(AT, AT + 3_600_000, treeOf(commitments));
    expect(body).toEqual({
      from: '2026-11-20T10:00:02Z',
      to: '2026-11-20T11:00:02Z',
      count: 13,
      root: sealedRoot(commitments).toString('hex'),
    });
    const entry = impersonalEntry({ type: 'verdicts.sealed', at: AT, purpose: null }, body);
    expect(parseEntry(entry)).toMatchObject({ body });
  });
});

describe('the commitment of a verdict', () => {
  const SALT = Buffer.alloc(16, 5);

  it('is HMAC-SHA-256 under the salt over four parts with 4-byte lengths', () => {
    const lp4 = (text: string): string =>
      Buffer.byteLength(text).toString(16).padStart(8, '0') + Buffer.from(text).toString('hex');
    const input = ['gpd/verdict/v1', 'acme', 'req_1', '{"class":"human","ü":1}'].map(lp4).join('');
    const expected = createHmac('sha256', SALT).update(Buffer.from(input, 'hex')).digest('base64url');
    expect(commitVerdict(SALT, 'acme', 'req_1', '{"class":"human","ü":1}')).toBe(expected);
    expect(expected).toHaveLength(43);
  });

  it('knows where one part ends and the next begins', () => {
    const part = fc.string({ unit: fc.constantFrom('a', 'b', '\u0000'), maxLength: 4 });
    fc.assert(
      fc.property(fc.tuple(part, part, part), fc.tuple(part, part, part), (a, b) => {
        const isSame = JSON.stringify(a) === JSON.stringify(b);
        expect(commitVerdict(SALT, ...a) === commitVerdict(SALT, ...b)).toBe(isSame);
      }),
    );
  });
});
