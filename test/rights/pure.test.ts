import { expect, it } from 'vitest';
import { actorRef, rightsRef } from '../../src/audit/audit-store.ts';
import { changeText, classText } from '../../src/ingest/verdict/verdict-words.ts';
import { createNotice } from '../../src/rights/dsar/dsar.ts';
import { erasureState, scopeResults, withCopies } from '../../src/rights/erase/erasure-service.ts';
import { transparencyView } from '../../src/rights/me/transparency.ts';
import { reaches, reachOfRequests } from '../../src/rights/subject.ts';

const key = Buffer.alloc(32, 7);

it('a decision about nobody is reached by nobody without a link', () => {
  const unknown = reachOfRequests('acme', []);
  expect(reaches(unknown, { requestId: 'req_9', durable: null })).toBe(false);
});

it('references tell kinds and keys apart, and issuer and sub', () => {
  expect(rightsRef(key, 'durable', 'x')).not.toBe(rightsRef(key, 'request', 'x'));
  expect(rightsRef(key, 'durable', 'x')).not.toBe(rightsRef(Buffer.alloc(32), 'durable', 'x'));
  expect(actorRef(key, 'a","b', 'c')).not.toBe(actorRef(key, 'a', 'b","c'));
});

it('what would have changed it names the decisive rules, or all, or none', () => {
  const decisive = [{ id: 'W6', class: 'human' }] as const;
  expect(changeText({ decisive, withoutAll: null })).toBe(
    'Without “The clock is set to UTC” the result would have been “a person”.',
  );
  expect(changeText({ decisive, withoutAll: null }, 'de')).toBe(
    'Ohne „Die Uhr ist auf UTC gestellt“ wäre das Ergebnis „ein Mensch“ gewesen.',
  );
  expect(changeText({ decisive: [], withoutAll: 'human' })).toMatch(/^No single sign was decisive/);
  expect(changeText({ decisive: [], withoutAll: null })).toBe('No rule changed the result.');
  expect(classText('something new')).toBe('something new');
});

it('the view tells bits at the floor and bands below it, never a sum', () => {
  const facts = { handle: 'h', purposes: ['p'], kAnonymityFloor: 50 };
  const signals = [
    { name: 'gpu', bits: 4.5678 },
    { name: 'math', bits: 0 },
  ];
  const exact = transparencyView({ devices: 50, jointBits: 5.005, signals }, facts);
  expect(exact).toMatchObject({ qualitativeOnly: false, totalEntropyBits: 5.01 });
  expect(exact.signals.map(({ entropyBits }) => entropyBits)).toEqual([4.57, 0]);
  const view = transparencyView({ devices: 49, jointBits: 5, signals }, facts);
  expect(view).toMatchObject({ qualitativeOnly: true, totalEntropyBits: 0 });
  expect(view.signals.map(({ band }) => band)).toEqual(['common', 'not enough data']);
  expect(view.signals.every(({ entropyBits }) => entropyBits === undefined)).toBe(true);
});

it('the notice says something on every point, the tenant’s words first', () => {
  const words = { controller: 'Acme', contact: '', purposes: '', recipients: 'Hooks Ltd', transfers: '' };
  const settings = Object.entries({ ...words, authority: 'BfDI, Bonn' });
  const named = Object.fromEntries(settings.map(([name, text]) => [`notice.${name}`, text]));
  const notice = createNotice(
    { ...named, 'retention.days': 12 } as Parameters<typeof createNotice>[0],
    ['Device identification'],
    ['hooks.example'],
  );
  expect(notice).toMatchObject({ recipients: 'Hooks Ltd', authority: 'BfDI, Bonn', controller: 'Acme' });
  expect(notice).toMatchObject({ purposes: 'Device identification' });
  expect(notice.retention).toContain('12 days');
  for (const text of Object.values(notice)) expect(text.length).toBeGreaterThan(3);
});

it('an erasure that a legal hold limits is partly done only if something was deleted', () => {
  const heldRows = { retained: 2, basis: 'Proceedings 12/26' };
  const stateOf = (erased: number) =>
    erasureState(scopeResults(withCopies({ decisions: { erased, ...heldRows } }, erased > 0, 3)));
  expect(stateOf(0)).toBe('held');
  expect(stateOf(1)).toBe('partly');
});
