import { openDatabase } from '../../src/db/engine.ts';

/** Fills a database by SQL with devices of one visit each. One visit in ten still has its verdict, half of these from long ago. */

const DAY = 86_400_000;
/** SQL for a random key as long as those of gpd. */
const KEY_43 = `substr(hex(randomblob(22)), 1, 43)`;
const KEY_22 = `hex(randomblob(11))`;
const COUNT = 'WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?)';

/** Inserts in the order of the key and creates other indexes afterwards: otherwise SQLite writes every page many times. */
export async function fillTables(file: string, kid: string, rows: number): Promise<void> {
  const database = await openDatabase({ location: file });
  const now = Date.now();
  const [today, epoch] = [Math.floor(now / DAY), Math.floor(now / (30 * DAY))];
  try {
    await database.transaction(async (tx) => {
      await tx.raw('CREATE TEMP TABLE made (durable text, visitor text, network text)');
      await tx.raw(`INSERT INTO made ${COUNT} SELECT ${KEY_43}, ${KEY_22}, ${KEY_22} FROM i`, [rows]);
      await tx.raw('DROP INDEX visitor_index_device');
      const madeRows = 'FROM made ORDER BY durable';
      await tx.raw(`INSERT INTO sightings SELECT ?, durable, ?, ?, 1 ${madeRows}`, [kid, now, now]);
      await tx.raw(`INSERT INTO network_marks SELECT ?, ?, durable, network ${madeRows}`, [today, kid]);
      await tx.raw(`INSERT INTO network_days SELECT ?, ?, durable, 1 ${madeRows}`, [today, kid]);
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
