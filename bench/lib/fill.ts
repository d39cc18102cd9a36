import { openDatabase } from '../../src/db/db.ts';

/** What many devices with one visit each leave behind, made by SQLite itself. One visit in ten has left its verdict, half of these long ago. */

const DAY = 86_400_000;
/** Keys as gpd makes them: random, and of the same length. */
const KEY_43 = `substr(hex(randomblob(22)), 1, 43)`;
const KEY_22 = `hex(randomblob(11))`;
const COUNT = 'WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?)';

/** Each table in the order of its key, and without the indexes it can get afterwards: else every page is written often. */
export async function fillTables(file: string, kid: string, rows: number): Promise<void> {
  const database = await openDatabase({ location: file });
  const now = Date.now();
  const [today, epoch] = [Math.floor(now / DAY), Math.floor(now / (30 * DAY))];
  try {
    await database.transaction(async (tx) => {
      await tx.raw('CREATE TEMP TABLE made (durable text, visitor text, network text)');
      await tx.raw(`INSERT INTO made ${COUNT} SELECT ${KEY_43}, ${KEY_22}, ${KEY_22} FROM i`, [rows]);
      await tx.raw('DROP INDEX visitor_index_device');
      const made = 'FROM made ORDER BY durable';
      await tx.raw(`INSERT INTO sightings SELECT ?, durable, ?, ?, 1 ${made}`, [kid, now, now]);
      await tx.raw(`INSERT INTO network_marks SELECT ?, ?, durable, network ${made}`, [today, kid]);
      await tx.raw(`INSERT INTO network_days SELECT ?, ?, durable, 1 ${made}`, [today, kid]);
      await tx.raw(`INSERT INTO visitor_index SELECT ?, visitor, durable, ?, ? FROM made ORDER BY visitor`, [
        kid,
        epoch,
        (epoch + 1) * 30 * DAY,
      ]);
      await tx.raw(`INSERT INTO nonces SELECT ?, network, ? FROM made ORDER BY network`, [kid, now + DAY]);
      await tx.raw('CREATE INDEX visitor_index_device ON visitor_index (kid, durable, epoch)');
      await tx.raw(
        `INSERT INTO decisions SELECT ?, printf('req_%026d', rowid), CASE WHEN rowid % 20 = 0 THEN ? ELSE ? END + rowid, 'human',
        durable, printf('%.571c', 'v'), visitor, network FROM made WHERE rowid % 10 = 0`,
        [kid, now - 200 * DAY, now - DAY],
      );
      await tx.raw('DROP TABLE made');
    });
    await database.truncateLog();
  } finally {
    await database.close();
  }
}

/** What the two databases say in their own words. */
const WORDS = {
  sqlite: {
    key43: KEY_43,
    key22: KEY_22,
    requestId: `printf('req_%026d', n)`,
    verdict: `printf('%.571c', 'v')`,
    network: 'lower(hex(randomblob(32)))',
  },
  postgres: {
    key43: `substr(upper(md5(random()::text) || md5(random()::text)), 1, 43)`,
    key22: `substr(upper(md5(random()::text)), 1, 22)`,
    requestId: `'req_' || lpad(n::text, 26, '0')`,
    verdict: `rpad('', 571, 'v')`,
    network: 'md5(random()::text) || md5(random()::text)',
  },
};

/**
 * Devices with one visit each, all of it long over: a verdict, a sighting and a visitor id. One verdict is new: without any a server
 * does not believe its clock.
 */
export async function fillDue(location: string, kid: string, devices: number): Promise<void> {
  const database = await openDatabase({ location });
  const words = WORDS[database.kind];
  const then = Date.now() - 200 * DAY;
  const epoch = Math.floor(then / (30 * DAY));
  const ends = (epoch + 1) * 30 * DAY;
  try {
    await database.longTransaction(async (tx) => {
      await tx.raw('CREATE TEMP TABLE made (n bigint, durable text, visitor text)');
      await tx.raw(`INSERT INTO made ${COUNT} SELECT n, ${words.key43}, ${words.key22} FROM i`, [devices]);
      await tx.raw(`INSERT INTO sightings SELECT ?, durable, ? + n, ? + n, 1 FROM made`, [kid, then, then]);
      await tx.raw(`INSERT INTO visitor_index SELECT ?, visitor, durable, ?, ? FROM made`, [
        kid,
        epoch,
        ends,
      ]);
      await tx.raw(
        `INSERT INTO decisions SELECT ?, ${words.requestId}, CASE n WHEN 1 THEN ? ELSE ? + n END, 'human',
        durable, ${words.verdict}, visitor, ${words.network} FROM made`,
        [kid, Date.now(), then],
      );
      await tx.raw('DROP TABLE made');
      // As autovacuum leaves it: without any statistics PostgreSQL sorts all that is due to find the oldest.
      if (database.kind === 'postgres') await tx.raw('ANALYZE');
    });
    await database.truncateLog();
  } finally {
    await database.close();
  }
}
