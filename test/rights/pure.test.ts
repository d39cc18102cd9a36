import { describe, expect, it } from 'vitest';
import { actorRef, displayHandle, rightsRef } from '../../src/audit/audit.ts';
import { changeText, classText, createNotice } from '../../src/rights/dsar/dsar.ts';
import {
  isIncomplete,
  markComplete,
  markPendingFiles,
  scopeResults,
} from '../../src/rights/erase/erasure.ts';
import { transparencyView } from '../../src/rights/me/transparency.ts';
import { reaches, reachOfRequests } from '../../src/rights/subject.ts';
import { ERASURE_SCOPES } from '../../src/schema/rights.ts';

const key = Buffer.alloc(32, 7);

describe('subjects', () => {
  it('a visitorId reaches the device, a link the linked requests, both reach both', () => {
    const device = { ...reachOfRequests('acme', []), durable: 'durable' };
    expect(reaches(device, { requestId: 'req_9', durable: 'durable' })).toBe(true);
    expect(reaches(device, { requestId: 'req_1', durable: 'other' })).toBe(false);
    const linked = reachOfRequests('acme', ['req_1', 'req_2']);
    expect(reaches(linked, { requestId: 'req_1', durable: 'durable' })).toBe(true);
    expect(reaches(linked, { requestId: 'req_9', durable: 'durable' })).toBe(false);
    const both = { ...linked, durable: 'durable' };
    expect(reaches(both, { requestId: 'req_2', durable: null })).toBe(true);
    expect(reaches(both, { requestId: 'req_9', durable: 'durable' })).toBe(true);
  });

  it('a decision about nobody is reached by nobody without a link', () => {
    const unknown = reachOfRequests('acme', []);
    expect(reaches(unknown, { requestId: 'req_9', durable: null })).toBe(false);
  });
});

describe('references', () => {
  it('tell kinds and keys apart, and issuer and sub', () => {
    expect(rightsRef(key, 'durable', 'x')).not.toBe(rightsRef(key, 'request', 'x'));
    expect(rightsRef(key, 'durable', 'x')).not.toBe(rightsRef(Buffer.alloc(32), 'durable', 'x'));
    expect(actorRef(key, 'a","b', 'c')).not.toBe(actorRef(key, 'a', 'b","c'));
    expect(displayHandle(key, 'd')).toMatch(/^[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}$/);
  });
});

describe('receipts', () => {
  it('have a line for every scope; retained wins over erased; pending is incomplete', () => {
    const scopes = scopeResults({
      decisions: { erased: 2, retained: 0 },
      contests: { erased: 1, retained: 1, basis: 'b' },
      storage: { erased: 1, retained: 0 },
    });
    expect(scopes.map(({ scope }) => scope)).toEqual([...ERASURE_SCOPES]);
    expect(scopes.find(({ scope }) => scope === 'contests')).toEqual({
      scope: 'contests',
      action: 'retained',
      count: 1,
      basis: 'b',
    });
    expect(isIncomplete(scopes)).toBe(false);
    const pending = markPendingFiles(scopes);
    expect(pending.find(({ scope }) => scope === 'decisions')?.action).toBe('pending');
    expect(isIncomplete(pending)).toBe(true);
    expect(markComplete(pending, true)).toEqual(scopes);
    const unscrubbed = markComplete(pending, false);
    expect(unscrubbed.filter(({ action }) => action === 'pending').map(({ scope }) => scope)).toEqual([
      'storage',
    ]);
    expect(markComplete(unscrubbed, true)).toEqual(scopes);
  });
});

describe('what would have changed it', () => {
  const rule = (id: string): string => `Rule ${id} says so.`;
  it('names the decisive rules, or all, or none', () => {
    const decisive = [{ id: 'A1', class: 'human' }] as const;
    expect(changeText({ decisive, withoutAll: null }, rule)).toBe(
      'Without “Rule A1 says so” the result would have been “a person”.',
    );
    expect(changeText({ decisive: [], withoutAll: 'human' }, rule)).toMatch(/^No single sign was decisive/);
    expect(changeText({ decisive: [], withoutAll: null }, rule)).toBe('No rule changed the result.');
    expect(classText('something new')).toBe('something new');
  });
});

describe('the view', () => {
  const facts = { handle: 'h', purposes: ['p'], kAnonymityFloor: 50 };
  const signals = [
    { name: 'gpu', bits: 4.5678 },
    { name: 'math', bits: 0 },
  ];
  it('tells bits at the floor and bands below it, never a sum', () => {
    expect(transparencyView({ devices: 50, jointBits: 5.005, signals }, facts)).toEqual({
      handle: 'h',
      purposes: ['p'],
      qualitativeOnly: false,
      totalEntropyBits: 5.01,
      signals: [
        { name: 'gpu', tier: 'stable', entropyBits: 4.57, purpose: 'device-identification' },
        { name: 'math', tier: 'stable', entropyBits: 0, purpose: 'device-identification' },
      ],
    });
    const view = transparencyView({ devices: 49, jointBits: 5, signals }, facts);
    expect(view).toMatchObject({ qualitativeOnly: true, totalEntropyBits: 0 });
    expect(view.signals.map(({ band }) => band)).toEqual(['common', 'not enough data']);
    expect(view.signals.every(({ entropyBits }) => entropyBits === undefined)).toBe(true);
  });
});

describe('the notice', () => {
  it('says something on every point, the tenant’s words first', () => {
    const settings = {
      'notice.controller': 'Acme',
      'notice.contact': '',
      'notice.purposes': '',
      'notice.recipients': '',
      'notice.transfers': '',
      'notice.authority': '',
      'retention.days': 12,
    };
    const notice = createNotice(settings, ['Device identification']);
    expect(notice).toMatchObject({ controller: 'Acme', purposes: 'Device identification' });
    expect(notice.retention).toContain('12 days');
    expect(notice.recipients).toMatch(/^Only the operator/);
    const webhookNotice = createNotice(settings, [], ['hooks.example']);
    expect([webhookNotice.recipients, webhookNotice.transfers].join()).toMatch(
      /and hooks\.example, .*where hooks\.example processes/,
    );
    const named = { 'notice.recipients': 'Hooks Ltd', 'notice.authority': 'BfDI, Bonn' };
    const namedNotice = createNotice({ ...settings, ...named }, [], ['hooks.example']);
    expect(namedNotice).toMatchObject({ recipients: 'Hooks Ltd', authority: 'BfDI, Bonn' });
    expect(notice.categories).toContain('passkey');
    for (const text of Object.values(notice)) expect(text.length).toBeGreaterThan(3);
  });
});
