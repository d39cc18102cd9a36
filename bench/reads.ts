import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type DeskSize, seedDesk, TOKEN } from './lib/desk.ts';
import type { Row } from './lib/report.ts';
import { drive, type JsonRequest, writeRequests } from './lib/requests.ts';
import type { Rig, Running } from './lib/rig.ts';
import { seededRandom } from './lib/stats.ts';
import { type Asked, compare, measureServer, runRounds, type Subject } from './lib/subjects.ts';

/** What is only read: the public key that every page asks for, and a reviewer's queue, each beside its floor. */

export interface ReadsPlan {
  readonly rounds: number;
  readonly keys: Omit<Asked, 'file' | 'status'>;
  readonly pages: Omit<Asked, 'file' | 'status'>;
  readonly desk: DeskSize;
  readonly seed: number;
}

const PROBES = 100;

interface Route {
  readonly file: string;
  /** Mean bytes of an answer's body. */
  readonly bytes: number;
}

async function makeRoute(
  rig: Rig,
  name: string,
  request: JsonRequest,
  asked: ReadsPlan['keys'],
  start: () => Promise<Running>,
): Promise<Route> {
  const count = Math.max(PROBES, asked.warmUp + asked.count + asked.open);
  const file = await writeRequests(join(rig.directory, `${name}.requests`), count, () => request);
  const server = await start();
  try {
    const { bodyBytes } = await drive(server.port, { file, skip: 0, count: PROBES, status: 200 });
    return { file, bytes: Math.round(bodyBytes) };
  } finally {
    await server.stop();
  }
}

export async function benchReads(rig: Rig, plan: ReadsPlan): Promise<Row[]> {
  const { desk, keys, pages, rounds } = plan;
  const data = await seedDesk(rig, 'reads', desk, seededRandom(plan.seed));
  const start = (): Promise<Running> => rig.startGpd(data);
  const page = { path: '/console/queue', headers: { Cookie: `gpd_console=${TOKEN}` } };
  const key = await makeRoute(rig, 'pubkey', { path: `/_fp/pubkey?kid=${rig.kid}` }, keys, start);
  const queue = await makeRoute(rig, 'queue', page, pages, start);
  const subject = (
    name: string,
    { file }: Route,
    asked: ReadsPlan['keys'],
    run: () => Promise<Running>,
  ): Subject => ({ name, run: async () => measureServer(await run(), { ...asked, file, status: 200 }) });
  const subjects = [
    subject('pubkey', key, keys, start),
    subject('pubkey floor', key, keys, () => rig.startOther('floor/bytes.mjs', key.bytes)),
    subject('pubkey Express', key, keys, () => rig.startOther('peers/express.mjs', 'pubkey', key.bytes)),
    subject('queue', queue, pages, start),
    subject('queue floor', queue, pages, () =>
      rig.startOther('floor/queue.mjs', join(data, 'gpd.db'), rig.kid, queue.bytes),
    ),
  ];
  try {
    const results = await runRounds('reads', subjects, rounds);
    const pairs = [
      { name: 'pubkey CPU per answer', pair: ['pubkey', 'pubkey floor'], unit: 'x floor' },
      { name: 'pubkey CPU per answer', pair: ['pubkey', 'pubkey Express'], unit: 'x Express' },
      { name: 'queue CPU per page', pair: ['queue', 'queue floor'], unit: 'x floor' },
    ] as const;
    return pairs.map((pair) => compare({ ...pair, goal: null }, results));
  } finally {
    rmSync(data, { recursive: true });
  }
}
