import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/db/db.ts';
import { KID } from '../support/constants.ts';
import { expectCore, post } from '../support/expect.ts';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { desktopChrome } from '../support/samples.ts';
import { makePlaintext, seal } from '../support/seal.ts';
import { describeWithTool } from '../support/tools.ts';
import { makePlace, serveAt, upgradeFrom } from './support/contract.ts';
import { freeze } from './support/freeze.ts';
import { hashOf, type Rung, readRungs } from './support/rung.ts';

/** From every release, with data in it. `FREEZE=0.2.0` writes the file of a release that is about to be made. */

const release = process.env['FREEZE'];
if (release !== undefined) await freeze(release);

const rungs = readRungs();
const named = rungs.map((rung) => [rung.release, rung] as const);

describe.each(named)('what %s left', (_release, rung) => {
  it('has rows to lose in most tables', () => {
    expect(rung.rows.size).toBeGreaterThanOrEqual(25);
    const tables = ['decisions', 'contests', 'overrides', 'consent_state', 'verdict_seals', 'erasures'];
    expect([...rung.rows.keys()]).toEqual(expect.arrayContaining(tables));
  });

  it.each(Object.entries(rung.migrations))('was made by %s, which nobody edited since', (name, hash) => {
    expect(hashOf(name)).toBe(hash);
  });
});

describe('an upgrade on SQLite', () => {
  it.each(named)('from %s keeps every row', (_release, rung) => upgradeFrom(rung));

  it.each(named)('from %s: a device is known, and its tenant has a log', async (_release, rung) => {
    const place = await makePlace(rung);
    const { app } = await serveAt(place, rung);
    const { publicKey } = (await (await fetch(`${app.url}/_fp/pubkey?kid=${KID}`)).json()) as {
      publicKey: string;
    };
    const target = { kid: KID, publicKey: Buffer.from(publicKey, 'base64') };
    const clientTs = rung.at + 60_000;
    const consent = { issuedAt: clientTs - 10_000 };
    const signals = desktopChrome(rung.known.device);
    const bundle = seal(target, makePlaintext({ clientTs, consent, signals }));
    const answer = expectCore(await post(app.url, bundle), 'ok');
    expect(answer).toMatchObject({ visitorId: rung.known.visitorId, confidence: 0.99 });
    await app.stop();
  });

  it('never begins a log anew that was lost', async () => {
    const rung = rungs.at(-1) as Rung;
    const place = await makePlace(rung);
    const database = await openDatabase({ location: place.location });
    await database.transaction((tx) => tx('ledger_heads').where({ kid: KID }).delete());
    await database.close();
    // That tenant is not served, and the others are.
    const { app, logs } = await serveAt(place, rung);
    const statusOf = async (kid: string) => (await fetch(`${app.url}/_fp/pubkey?kid=${kid}`)).status;
    expect([await statusOf(KID), await statusOf('other')]).toEqual([404, 200]);
    await app.stop();
    expect(logs()).toMatch(/"event":"tenant-damaged","tenant":"acme"/);
    const after = await openDatabase({ location: place.location });
    expect(await after.read('ledger_heads').pluck('kid')).toEqual(['other']);
    await after.close();
  });
});

describeWithTool('an upgrade on PostgreSQL', await missingPostgres(), () => {
  it.each(named)('from %s keeps every row', async (_release, rung) =>
    upgradeFrom(rung, await sharedPostgres().freshUrl()),
  );
});
