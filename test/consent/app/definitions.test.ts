import { writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { Purpose } from '../../../src/tenants/purposes.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { expectCore, expectError, post, SEEN_WITHIN } from '../../support/expect.ts';
import { ask, JSON_TYPE, type Reply } from '../../support/http.ts';
import { fc } from '../../support/property.ts';
import { createBundle } from '../../support/seal.ts';
import { started } from '../../support/started.ts';
import { bearer, createBrowser, type Decision, PURPOSE, startApi } from './support/api.ts';
import { readExport } from './support/naive-log.ts';

/** Consent is bound to what was said (contract-2 section 22). */

const api = started(() => startApi());
let lastNumber = 0;
beforeAll(async () => {
  await define({ id: 'another', gpc: 'ignore' });
});

type Change = Partial<Purpose> & { readonly id: string; readonly material?: boolean };

const first = { title: 'Remember my language', description: 'A cookie', lawfulBasis: 'consent' } as const;
function nextId(): string {
  lastNumber += 1;
  return `purpose-${lastNumber}`;
}

function put(change: Change, over: object = {}): Promise<Reply> {
  const headers = { ...JSON_TYPE, ...bearer(api.keys.operator) };
  const body = JSON.stringify({ purposes: [{ ...first, ...change }], ...over });
  return ask(api.gpd.url, '/v1/consent/purposes', { method: 'PUT', headers, body });
}

/** @returns the number of the entry */
async function define(change: Change, over: object = {}): Promise<number> {
  const reply = await put(change, over);
  expect(reply.status).toBe(200);
  return (reply.json() as { entries: { seq: number }[] }).entries[0]?.seq ?? -1;
}

const entry = async (seq: number): Promise<Readonly<Record<string, unknown>>> => {
  const text = readExport(await api.get('/v1/ledger/export'))[seq]?.entry ?? '{}';
  return JSON.parse(text) as Readonly<Record<string, unknown>>;
};

/** The decision of each door must be the same. */
async function decisions(principalId: string, purpose: string): Promise<Decision> {
  const check = await api.check(principalId, purpose);
  const checks = [{ id: 'one', principalId, purpose }];
  const batch = await api.post('/v1/consent/can-process/batch', { checks });
  expect(batch.json()).toMatchObject({ results: [{ ...check, id: 'one' }] });
  const state = (await api.post('/v1/consent/state', { principalId })).json() as { purposes: object[] };
  const { subject, ...decision } = check;
  expect(state).toMatchObject({ subject });
  expect(state.purposes).toContainEqual(expect.objectContaining({ purpose, ...decision }));
  return check;
}

describe('a purpose that is defined in other words', () => {
  it.each([
    ['title', { title: 'Sell my health data' }],
    ['description', { description: 'To anyone, for ever' }],
    ['lawfulBasis', { lawfulBasis: 'legitimate-interests' }],
    ['gpc', { gpc: 'ignore' }],
  ] as const)(
    '%s: each door answers policy-outdated until the person grants again',
    async (_name, change) => {
      const id = nextId();
      const definition = await define({ id });
      const { seq, hash } = await api.write('grant', { principalId: 'ann', purposes: [id] });
      await api.write('deny', { principalId: 'ben', purposes: [id] });
      expect(await decisions('ann', id)).toMatchObject({ allowed: true });
      expect((await api.events('ann'))[0]).toMatchObject({ seq, definition });
      expect((await api.events('ben'))[0]).toMatchObject({ type: 'consent.denied', definition });
      // Neither the same words nor another lifetime changes what was agreed to.
      await define({ id });
      await define({ id, ttlDays: 9 });
      expect(await decisions('ann', id)).toMatchObject({ allowed: true });

      await define({ id, ...change });
      expect(await decisions('ann', id)).toMatchObject({
        allowed: false,
        reason: 'policy-outdated',
        proof: { seq, hash },
        expiresAt: null,
      });
      expect(await decisions('ben', id)).toMatchObject({ reason: 'denied' });
      // Nor do the first words bring it back.
      await define({ id });
      expect(await decisions('ann', id)).toMatchObject({ reason: 'policy-outdated' });
      await api.write('grant', { principalId: 'ann', purposes: [id] });
      expect(await decisions('ann', id)).toMatchObject({ allowed: true });
    },
  );

  it('is outdated at the command line, too, and for an imported record; a receipt has the words of its time', async () => {
    const id = nextId();
    const ttlDays = 36_500;
    await define({ id, ttlDays });
    const { seq } = await api.write('grant', { principalId: 'cem', purposes: [id] });
    const file = `${api.gpd.dataDir}/${id}.csv`;
    writeFileSync(file, `principalId,purpose,action,recordedAt\ndora,${id},grant,2024-01-01T00:00:00Z\n`);
    expect(await api.gpd.json(['consent', 'import', KID, file])).toMatchObject({ recorded: 1 });
    expect(await decisions('dora', id)).toMatchObject({ allowed: true });
    await define({ id, ttlDays, title: 'Sell my health data' });
    expect(await decisions('dora', id)).toMatchObject({ reason: 'policy-outdated' });
    // The record is no news, although the words are.
    expect(await api.gpd.json(['consent', 'import', KID, file])).toMatchObject({ recorded: 0, outdated: 1 });
    expect(await decisions('dora', id)).toMatchObject({ reason: 'policy-outdated' });
    expect(await api.gpd.json(['consent', 'check', KID, 'cem', id])).toMatchObject({
      reason: 'policy-outdated',
    });
    const receipt = (await api.get(`/v1/consent/receipts/${seq}`)).json() as { receipt: { consent: object } };
    expect(receipt.receipt.consent).toMatchObject({ purpose: { id, ...first } });
    expect(await api.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
  });

  it('that was removed in between is a new one, also in the same words', async () => {
    const id = nextId();
    await define({ id, gpc: 'ignore' });
    await api.write('grant', { principalId: 'eva', purposes: [id] });
    await api.gpd.json(['consent', 'purposes', 'remove', KID, id, '--yes']);
    await define({ id, gpc: 'ignore' });
    await vi.waitFor(
      async () => expect(await api.check('eva', id)).toMatchObject({ reason: 'policy-outdated' }),
      SEEN_WITHIN,
    );
    expect(await api.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
  });
});

it('a bundle whose grant was about other words is refused where the ledger has to prove it', async () => {
  const ledgerApi = await startApi();
  await ledgerApi.gpd.json(['tenants', 'set', KID, 'consent.basis=ledger']);
  const { publicKey } = (await ledgerApi.get(`/_fp/pubkey?kid=${KID}`, '')).json() as { publicKey: string };
  const target = { kid: KID, publicKey: Buffer.from(publicKey, 'base64') };
  const { seq, hash } = await ledgerApi.write('grant', { principalId: 'ida' });
  const consent = { purposes: [PURPOSE, 'ads'], gpc: false, principalId: 'ida', proof: { seq, hash } };
  const visit = () => post(ledgerApi.gpd.url, createBundle(target, { consent }));
  // The page’s own assertion does not become a proven purpose.
  const proven = { basis: 'proven', purposes: [PURPOSE] };
  await vi.waitFor(
    async () => expect(expectCore(await visit(), 'ok').consentState).toMatchObject(proven),
    SEEN_WITHIN,
  );
  await ledgerApi.gpd.json(['consent', 'purposes', 'set', KID, PURPOSE, '--title', 'Sell my health data']);
  await vi.waitFor(async () => expectCore(await visit(), 'consent-missing'), SEEN_WITHIN);
  await ledgerApi.stop();
});

describe('a change that its writer calls not material', () => {
  it('asks nobody again, and the entry records who said so', async () => {
    const id = nextId();
    await define({ id });
    await api.write('grant', { principalId: 'finn', purposes: [id] });
    const ofPurpose = await define({ id, title: 'Remember my tongue', material: false });
    const ofCall = await define({ id, title: 'Remember the language' }, { material: false });
    await api.gpd.json([
      'consent',
      'purposes',
      'set',
      KID,
      id,
      '--title',
      'Keep my language',
      '--not-material',
    ]);
    expect(await decisions('finn', id)).toMatchObject({ allowed: true });
    const by = expect.stringMatching(/^[\w-]{43}$/) as unknown;
    for (const seq of [ofPurpose, ofCall])
      expect(await entry(seq)).toMatchObject({ type: 'purpose.defined', body: { id, material: false, by } });
    const rows = await api.gpd.json<{ detail: object }[]>(['audit', KID, '--action', 'purpose.defined']);
    expect(rows[0]?.detail).toMatchObject({ purpose: id, material: false });
    expect(await api.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
    // Its word is about this change alone.
    await define({ id, title: 'Sell my health data' });
    expect(await decisions('finn', id)).toMatchObject({ reason: 'policy-outdated' });
  });

  it.each([
    ['no', { material: 'no' }],
    ['null', { material: null }],
  ])('%s is no word: 400', async (_what, over) => {
    expectError(await put({ id: nextId() }, over), 'invalid-request');
  });
});

describe('a choice that GPC overruled', () => {
  it.each([
    ['opt-out', 'ignore'],
    ['opt-out', 'ask'],
    ['ask', 'ignore'],
  ] as const)('under %s stays overruled under %s', async (gpc, laxer) => {
    const id = nextId();
    await define({ id, gpc });
    await api.write('grant', { principalId: `${id}-before`, purposes: [id], gpc: true });
    await api.write('deny', { principalId: `${id}-signal`, purposes: [id], gpc: true });
    await api.write('grant', { principalId: `${id}-later`, purposes: [id] });
    await define({ id, gpc: laxer }, { material: false });
    await api.write('grant', { principalId: `${id}-later`, purposes: ['another'], gpc: true });
    for (const who of ['before', 'signal', 'later'])
      expect(await decisions(`${id}-${who}`, id)).toMatchObject({ allowed: false, reason: 'gpc-opt-out' });
    // A person's own grant under the laxer policy is another choice.
    if (laxer !== 'ignore') return;
    await api.write('grant', { principalId: `${id}-before`, purposes: [id] });
    expect(await decisions(`${id}-before`, id)).toMatchObject({ allowed: true });
  });

  it('by a policy in between stays overruled when that policy ends', async () => {
    const id = nextId();
    await define({ id, gpc: 'ignore' });
    await api.write('grant', { principalId: 'gus', purposes: [id], gpc: true });
    expect(await decisions('gus', id)).toMatchObject({ allowed: true });
    await define({ id, gpc: 'opt-out' }, { material: false });
    expect(await decisions('gus', id)).toMatchObject({ reason: 'gpc-opt-out' });
    await define({ id, gpc: 'ignore' }, { material: false });
    expect(await decisions('gus', id)).toMatchObject({ reason: 'gpc-opt-out' });
  });
});

describe('a grant that names the definition that was shown', () => {
  it('is of that definition: a page that stayed open grants nothing in words that it did not show', async () => {
    const id = nextId();
    const shown = await define({ id });
    await define({ id, title: 'Sell my health data' });
    const browser = createBrowser();
    const body = { ...browser, purposes: [id], definitions: { [id]: shown } };
    const reply = await api.post('/v1/consent/grant', body, api.keys.publishable, { origin: ORIGIN });
    expect(reply.status).toBe(201);
    expect(await decisions(browser.principalId, id)).toMatchObject({ reason: 'policy-outdated' });
    expect((await api.events(browser.principalId))[0]).toMatchObject({ definition: shown });
    const banner = await api.get('/v1/consent/banner', api.keys.publishable, { origin: ORIGIN });
    const { purposes } = banner.json() as { purposes: { id: string; definition: { seq: number } }[] };
    const present = purposes.find((purpose) => purpose.id === id)?.definition;
    expect(present).toMatchObject({ outdatedUntil: Number(present?.seq) - 1 });
    const again = { ...body, definitions: { [id]: present?.seq } };
    await api.post('/v1/consent/grant', again, api.keys.publishable, { origin: ORIGIN });
    expect(await decisions(browser.principalId, id)).toMatchObject({ allowed: true });
    expect(await api.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
  });

  it('that is none: 400', async () => {
    const id = nextId();
    const other = await define({ id: nextId() });
    const seq = await define({ id });
    for (const definitions of [
      { [id]: other },
      { [id]: 0 },
      { [id]: seq + 1 },
      { another: seq },
      { [id]: -1 },
    ]) {
      const reply = await api.post('/v1/consent/grant', { principalId: 'hal', purposes: [id], definitions });
      expectError(reply, 'invalid-request');
    }
    expect(await api.check('hal', id)).toMatchObject({ reason: 'never-asked' });
  });
});

type Gpc = 'opt-out' | 'ask' | 'ignore';
type Choice = Readonly<{ granted: boolean; strict: Gpc; stale: boolean }>;
const STRICTNESS: readonly Gpc[] = ['ignore', 'ask', 'opt-out'];
const strictest = (...policies: readonly Gpc[]): Gpc =>
  STRICTNESS[Math.max(...policies.map((policy) => STRICTNESS.indexOf(policy)))] ?? 'opt-out';

const signal = fc.constantFrom(undefined, true, false);
const acts = fc.array(
  fc.oneof(
    fc.record({
      act: fc.constant('define' as const),
      title: fc.constantFrom('One', 'Two'),
      gpc: fc.constantFrom<Gpc>('opt-out', 'ask', 'ignore'),
      material: fc.boolean(),
    }),
    fc.record({ act: fc.constantFrom('grant' as const, 'deny' as const, 'withdraw' as const), signal }),
    fc.record({ act: fc.constant('elsewhere' as const) }),
  ),
  { minLength: 1, maxLength: 9 },
);

describe('whatever order definitions and choices have', () => {
  it('a check answers as a small model, and no act of the tenant makes it yes', {
    timeout: 120_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(acts, async (steps) => {
        const id = nextId();
        const principalId = `person of ${id}`;
        let terms = { title: 'One', gpc: 'opt-out' as Gpc };
        await define({ id, ...terms });
        let choice = null as Choice | null;
        let opted = false;
        let was = false;
        for (const step of steps) {
          if (step.act === 'define') {
            const { title, gpc, material } = step;
            await define({ id, title, gpc }, { material });
            const changed = title !== terms.title || gpc !== terms.gpc;
            if (choice)
              choice = {
                ...choice,
                strict: strictest(choice.strict, gpc),
                stale: choice.stale || (changed && material),
              };
            terms = { title, gpc };
          } else if (step.act === 'elsewhere') {
            await api.write('grant', { principalId, purposes: ['another'], gpc: true });
            opted = true;
          } else {
            const gpc = step.signal === undefined ? {} : { gpc: step.signal };
            await api.write(step.act, { principalId, purposes: [id], ...gpc });
            if (step.signal === true) opted = true;
            if (step.signal === false && step.act === 'grant') opted = false;
            choice = { granted: step.act === 'grant', strict: terms.gpc, stale: false };
          }
          const { allowed } = await api.check(principalId, id);
          const isOverruled = opted && choice?.strict !== 'ignore';
          expect(allowed).toBe(choice?.granted === true && !choice.stale && !isOverruled);
          if (step.act === 'define') expect(allowed && !was).toBe(false);
          was = allowed;
        }
      }),
      { numRuns: 25 },
    );
  });
});
