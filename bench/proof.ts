import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, openDatabase } from '../src/db/db.ts';
import { type Bindings, insertMany } from '../src/db/sql.ts';
import {
  appendLeaves,
  EMPTY_FRONTIER,
  type Frontier,
  frontierRoot,
  inclusionProof,
} from '../src/ledger/merkle.ts';
import { makeHashReader } from '../src/log/entries.ts';
import { verifyInclusion } from '../test/support/log-reader.ts';
import { note, type Row } from './lib/report.ts';
import type { Rig } from './lib/rig.ts';
import { median, pairedRatio, seededRandom } from './lib/stats.ts';

/** An inclusion proof out of a small log and out of a large one, each in a database of its own. */

export interface ProofPlan {
  readonly few: number;
  readonly many: number;
  readonly rounds: number;
  readonly count: number;
  readonly seed: number;
}

interface Log {
  readonly database: Database;
  readonly data: string;
  readonly size: number;
  readonly root: Buffer;
}

const KID = 'bench';
const CHUNK = 7500;
/** As long as a real entry; a proof never reads it. */
const ENTRY = 'e'.repeat(220);

const leafOf = (seq: number): Buffer => createHash('sha256').update(`leaf ${seq}`).digest();

/** A real tree over leaves that are hashes of nothing real. */
async function makeLog(rig: Rig, size: number): Promise<Log> {
  note(`proof: writing a log of ${size} entries`);
  const data = rig.freshData(`proof-${size}`);
  const database = await openDatabase({ location: join(data, 'gpd.db') });
  let frontier: Frontier = EMPTY_FRONTIER;
  await database.transaction(async (tx) => {
    await tx('ledger_entries').delete();
    for (let start = 0; start < size; start += CHUNK) {
      const leaves = Array.from({ length: Math.min(CHUNK, size - start) }, (_, i) => leafOf(start + i));
      const appended = appendLeaves(frontier, leaves);
      frontier = appended.frontier;
      const entries = leaves.map((leaf, i): Bindings => [KID, start + i, leaf.toString('hex'), ENTRY]);
      await insertMany(tx, 'INSERT INTO ledger_entries (kid, seq, hash, entry)', entries);
      const blocks = appended.completed.map(
        ({ level, index, hash }): Bindings => [KID, level, index, hash.toString('hex')],
      );
      await insertMany(tx, 'INSERT INTO ledger_blocks (kid, level, block, hash)', blocks);
    }
  });
  return { database, data, size, root: frontierRoot(frontier) };
}

/** Microseconds of CPU for one proof. @throws when the last one does not lead to the root */
async function prove(log: Log, count: number, random: () => number): Promise<number> {
  const reader = makeHashReader(log.database, KID);
  let index = 0;
  let path: readonly Buffer[] = [];
  const before = process.cpuUsage();
  for (let i = 0; i < count; i += 1) {
    index = Math.floor(random() * log.size);
    path = await inclusionProof(index, log.size, reader);
  }
  const { user, system } = process.cpuUsage(before);
  if (!verifyInclusion(index, log.size, leafOf(index), path, log.root)) throw new Error('a proof is wrong');
  return (user + system) / count;
}

export async function benchProof(rig: Rig, plan: ProofPlan): Promise<Row[]> {
  const [few, many] = [await makeLog(rig, plan.few), await makeLog(rig, plan.many)];
  const random = seededRandom(plan.seed);
  const times: { few: number[]; many: number[] } = { few: [], many: [] };
  try {
    // The first round only warms up.
    for (let round = 0; round <= plan.rounds; round += 1) {
      const pair = [await prove(few, plan.count, random), await prove(many, plan.count, random)] as const;
      if (round === 0) continue;
      times.few.push(pair[0]);
      times.many.push(pair[1]);
    }
  } finally {
    for (const { database, data } of [few, many]) {
      await database.close();
      rmSync(data, { recursive: true });
    }
  }
  const details = { few: median(times.few), many: median(times.many) };
  note(`proof: ${details.few.toFixed(0)} and ${details.many.toFixed(0)} µs`);
  return [
    {
      name: `proof CPU at ${plan.many.toLocaleString('en')} entries`,
      value: pairedRatio(times.many, times.few),
      unit: `x at ${plan.few.toLocaleString('en')}`,
      goal: { atMost: 20 },
      details,
    },
  ];
}
