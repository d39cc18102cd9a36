import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import type { Knex } from 'knex';
import type { Config } from '../../../src/config.ts';
import { macTerms, publishPolicy, savePurposes } from '../../../src/consent/terms-store.ts';
import { verifyLog } from '../../../src/consent/verify-service.ts';
import type { Database } from '../../../src/db/engine.ts';
import { createMasterKey, LEDGER_SECRET, tenantSecretContext } from '../../../src/keys/master-key.ts';
import { appendLeaves, EMPTY_FRONTIER, encodeFrontier } from '../../../src/ledger/merkle.ts';
import { createNoteSigner } from '../../../src/ledger/note.ts';
import { MINUTE } from '../../../src/lib/clock.ts';
import { checkpointFile, createCheckpointBook } from '../../../src/log/checkpoint-files.ts';
import { currentCheckpoint, keepCheckpoints } from '../../../src/log/checkpoint-service.ts';
import { readEntries, readHead } from '../../../src/log/entries-store.ts';
import { addTenant } from '../../../src/ops/new-tenant-service.ts';
import { createFirstPurpose } from '../../../src/tenants/purposes.ts';
import { readTenantSecret } from '../../../src/tenants/secrets-store.ts';
import type { TestDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { tempDir } from '../../support/command.ts';
import { NOW } from '../../support/make.ts';
import { append, createAppend, createAppender, macOf, WRAP_KEY } from '../app/store/fixture.ts';

export const SECRET = Buffer.alloc(32, 3);
const masterKey = createMasterKey(Buffer.alloc(32, 5), randomBytes);

/** Logs of tenants on one database, and nodes that sign them. */
export function logsOf(db: TestDatabase, other: Database) {
  /** A node with a data directory of its own. */
  function createNode(kid: string, database: Database, dataDir = tempDir('node')) {
    let now = NOW;
    const book = createCheckpointBook(dataDir, SECRET);
    const keysOf = async () => {
      const wrapped = (await readTenantSecret(other, kid, LEDGER_SECRET)) ?? '';
      const seed = masterKey.unwrap(wrapped, tenantSecretContext(kid, LEDGER_SECRET));
      const signer = createNoteSigner(`gpd.example/ledger/${kid}`, seed);
      return { signer, principalWrap: WRAP_KEY, stateMac: macOf(kid) };
    };
    const deps = async () => {
      const keys = await keysOf();
      return { database, book, tenantOf: () => keys, clock: () => now };
    };
    return {
      file: checkpointFile(dataDir),
      book,
      wait: (ms: number) => {
        now += ms;
      },
      /** Over all entries. */
      async sign() {
        now += MINUTE;
        const head = await readHead(database, kid);
        return currentCheckpoint(await deps(), kid, head?.size ?? 0);
      },
      keep: async () => keepCheckpoints(await deps(), kid),
      /** A verifier of another process has read nothing yet. */
      async codes() {
        const trusted = { book: createCheckpointBook(dataDir, SECRET), keys: await keysOf() };
        const problems = (await verifyLog(database, kid, { trusted, now: Infinity }))?.problems ?? [];
        return [...new Set(problems.map(({ code }) => code))].sort();
      },
    };
  }

  /** anna grants and withdraws, bert grants, in one turn; a policy is published; all of it is signed. */
  async function createLog(kid: string): Promise<LogNode> {
    const node = createNode(kid, db.database);
    const config = { data_dir: dirname(node.file), base_url: 'https://gpd.example' } as Config;
    const store = { database: db.database, masterKey, serverSecret: SECRET };
    await addTenant(store, config, { kid, origins: [], now: NOW });
    await db.database.transaction((tx) => macTerms(tx, { kid, stateMac: macOf(kid) }));
    await macEntries(kid);
    await publishPolicy(
      db.database,
      { kid, stateMac: macOf(kid) },
      { text: 'We ask.', material: true },
      operatorAt(NOW),
    );
    const appender = createAppender(db.database);
    const choices = [{}, { choice: 'withdrawn' }, { principalId: 'bert' }] as const;
    await Promise.all(choices.map((choice) => append(appender, createAppend(kid, choice))));
    await node.sign();
    return node;
  }
  /** The entries of a new tenant carry MACs of a key that this test does not know. */
  async function macEntries(kid: string): Promise<void> {
    for (const { seq, hash } of await readEntries(other, kid, 0, 10))
      await write((tx) =>
        tx('ledger_entries')
          .where({ kid, seq })
          .update({ mac: macOf(kid).ofEntry(seq, hash) }),
      );
  }
  const write = (work: (tx: Knex.Transaction) => PromiseLike<unknown>): Promise<unknown> =>
    db.database.transaction(async (tx) => work(tx));

  const definePurpose = (kid: string, database = db.database) =>
    savePurposes(database, { kid, stateMac: macOf(kid) }, [createFirstPurpose()], operatorAt(NOW));

  /** The head as it was at a size, with no word of a checkpoint. */
  async function rollBack(kid: string, size: number): Promise<void> {
    const entries = await readEntries(other, kid, 0, size);
    const leaves = entries.map(({ hash }) => Buffer.from(hash, 'hex'));
    const { frontier } = appendLeaves(EMPTY_FRONTIER, leaves);
    const head = { size, frontier: encodeFrontier(frontier), head_hash: entries.at(-1)?.hash };
    await write(async (tx) => {
      await tx('ledger_entries').where({ kid }).where('seq', '>=', size).delete();
      await tx('consent_openings').where({ kid }).where('seq', '>=', size).delete();
      await tx('consent_state').where({ kid }).where('seq', '>=', size).delete();
      await tx('checkpoints').where({ kid }).delete();
      await tx('ledger_heads').where({ kid }).update(head);
    });
  }

  return { db, other, createNode, createLog, write, definePurpose, rollBack };
}

export type Logs = ReturnType<typeof logsOf>;
export type LogNode = ReturnType<Logs['createNode']>;
