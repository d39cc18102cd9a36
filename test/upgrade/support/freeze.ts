import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from '../../../src/db/db.ts';
import { HOUR } from '../../../src/lib/clock.ts';
import { anchorVerdicts } from '../../../src/log/verdict-anchor-store.ts';
import { type Rights, startRightsProcess } from '../../rights/support/rights.ts';
import { KID, REASON } from '../../support/constants.ts';
import { type Head, hashOf, MIGRATIONS, rungFile } from './rung.ts';

/** Writes the file of a release: rows of the real program, with every feature that leaves some. */

const DEVICE = 'b'.repeat(32);

/** Bundles, a contest and its outcome, an erasure, keys, a webhook, consent. @returns the visitorId of the known device */
async function live(rights: Rights): Promise<string> {
  const { gpd } = rights;
  const known = await rights.visit({ device: DEVICE });
  const visits = [];
  for (let i = 0; i < 6; i += 1) visits.push(await rights.visit({ bot: i % 2 === 1 }));
  await rights.visit({ target: rights.other, origin: 'https://other.example' });
  const [first, contested] = visits;
  const subject = await rights.as({ gpd_role: 'subject', sub: 'anna', gpd_visitor: contested?.visitorId });
  const filed = await rights.call('/privacy/contest', { requestId: contested?.requestId }, subject);
  const { contestId } = filed.json() as { contestId: string };
  const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita' });
  const body = { contestId, outcome: 'overturned', reason: REASON };
  const resolved = await rights.call('/privacy/contest/resolve', body, reviewer);
  if (resolved.status !== 200) throw new Error(`the contest was not resolved: ${resolved.text}`);
  await gpd.json(['erase', '--tenant', KID, '--visitor', first?.visitorId ?? '', '--yes']);
  await gpd.json(['apikeys', 'create', KID, '--scope', 'secret', '--name', 'backend']);
  await gpd.json(['webhooks', 'add', KID, 'https://shop.example/hooks']);
  await gpd.json(['keys', 'rotate', KID]);
  for (const principal of ['anna', 'bert']) {
    await gpd.json(['consent', 'grant', KID, principal, 'device-identification']);
  }
  await gpd.json(['consent', 'withdraw', KID, 'bert', 'device-identification']);
  return known.visitorId;
}

/** Every row; acme's verdicts three hours back, and their hour sealed. */
async function rowsOf(location: string, at: number): Promise<readonly string[]> {
  const database = await openDatabase({ location });
  try {
    const hour = Math.floor(at / HOUR) * HOUR - 3 * HOUR;
    await database.transaction((tx) =>
      tx('decisions')
        .where({ kid: KID })
        .update({ decided_at: hour + 1000 }),
    );
    await anchorVerdicts(database, KID, at);
    const tables = (await database
      .read('sqlite_master')
      .where({ type: 'table' })
      .whereNot('name', 'like', 'sqlite_%')
      .whereNot('name', 'like', 'knex_%')
      .orderBy('name')
      .pluck('name')) as string[];
    const lines: string[] = [];
    for (const table of tables) {
      for (const row of (await database.read(table)) as object[]) lines.push(JSON.stringify([table, row]));
    }
    return lines;
  } finally {
    await database.close();
  }
}

export async function freeze(release: string): Promise<void> {
  const rights = await startRightsProcess();
  const visitorId = await live(rights);
  await rights.stop();
  const { dataDir } = rights.gpd;
  const at = Date.now();
  const rows = await rowsOf(join(dataDir, 'gpd.db'), at);
  const names = readdirSync(MIGRATIONS).sort();
  const head: Head = {
    release,
    at,
    migrations: Object.fromEntries(names.map((name) => [name, hashOf(name)])),
    masterKey: readFileSync(join(dataDir, 'master.key')).toString('base64'),
    kids: [KID, 'other'],
    known: { device: DEVICE, visitorId },
  };
  writeFileSync(rungFile(release), `${[JSON.stringify(head), ...rows].join('\n')}\n`);
}
