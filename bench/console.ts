import { rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { ACTOR, CSRF, type DeskSize, hash, id, seedDesk, TOKEN } from './lib/desk.ts';
import { note, type Row } from './lib/report.ts';
import type { Rig, Running } from './lib/rig.ts';
import { median, seededRandom } from './lib/stats.ts';

/** Every page of the console over a small installation and over a large one, asked in turns; answers in milliseconds. */

export interface ConsolePlan {
  readonly few: DeskSize;
  readonly many: DeskSize;
  readonly rounds: number;
  readonly seed: number;
}

interface Seeded {
  readonly data: string;
  readonly server: Running;
  readonly agent: Agent;
}

async function seed(rig: Rig, name: string, size: DeskSize, chance: () => number): Promise<Seeded> {
  const data = await seedDesk(rig, name, size, chance);
  const server = await rig.startGpd(data);
  return { data, server, agent: new Agent({ keepAlive: true, maxSockets: 1 }) };
}

interface Page {
  readonly name: string;
  readonly path: string;
  readonly form?: Readonly<Record<string, string>>;
}

const PAGES: readonly Page[] = [
  { name: 'queue', path: '/queue' },
  { name: 'queue, one class', path: '/queue?class=unknown' },
  { name: 'queue, overdue', path: '/queue?due=late' },
  { name: 'queue, old', path: '/queue?age=28' },
  { name: 'queue, resolved', path: '/queue?state=resolved' },
  { name: 'case', path: `/contests/${id('con', 2)}` },
  { name: 'overview', path: '/overview' },
  { name: 'subject', path: '/subjects', form: { kind: 'visitor', id: hash('visitor 7').slice(0, 22) } },
  { name: 'plan of an erasure', path: '/subjects/plan', form: { kind: 'request', id: id('req', 9) } },
  { name: 'audit', path: '/audit' },
  { name: 'audit, one action', path: '/audit?action=contest.resolved' },
  { name: 'audit, one actor', path: `/audit?actor=${ACTOR}` },
  { name: 'receipts', path: '/receipts' },
  { name: 'holds', path: '/holds' },
  { name: 'ledger', path: '/ledger?seq=0' },
  { name: 'keys', path: '/keys' },
  { name: 'purposes', path: '/terms' },
  { name: 'preview of the banner', path: '/banner' },
  { name: 'sessions', path: '/sessions' },
];

/** Milliseconds until the whole page is there. @throws unless it is a 200 of some length */
function visit({ server, agent, data }: Seeded, page: Page): Promise<number> {
  const origin = `http://127.0.0.1:${server.port}`;
  const body = page.form && new URLSearchParams({ csrf: CSRF, ...page.form }).toString();
  const headers = {
    cookie: `gpd_console=${TOKEN}`,
    origin,
    ...(body === undefined
      ? {}
      : { 'content-type': 'application/x-www-form-urlencoded', 'content-length': body.length }),
  };
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const sent = request(`${origin}/console${page.path}`, {
      agent,
      headers,
      method: body === undefined ? 'GET' : 'POST',
    });
    sent.once('error', reject);
    sent.once('response', (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.once('end', () => {
        const ok = response.statusCode === 200 && bytes > 1000;
        if (ok) resolve(performance.now() - start);
        else reject(new Error(`${data}: ${page.path}: ${response.statusCode}, ${bytes} bytes`));
      });
    });
    sent.end(body);
  });
}

async function compare(few: Seeded, many: Seeded, page: Page, rounds: number): Promise<Row> {
  const times: { few: number[]; many: number[] } = { few: [], many: [] };
  for (let round = -3; round < rounds; round += 1) {
    const pair = [await visit(few, page), await visit(many, page)] as const;
    // The first ones compile the templates.
    if (round < 0) continue;
    times.few.push(pair[0]);
    times.many.push(pair[1]);
  }
  const details = { few: median(times.few), many: median(times.many) };
  note(`console: ${page.name}: ${details.few.toFixed(2)} and ${details.many.toFixed(2)} ms`);
  return {
    name: `console, ${page.name}`,
    value: details.many / details.few,
    unit: 'x small',
    goal: { atMost: 3 },
    details,
  };
}

export async function benchConsole(rig: Rig, plan: ConsolePlan): Promise<Row[]> {
  const chance = seededRandom(plan.seed);
  const both: Seeded[] = [];
  try {
    for (const name of ['few', 'many'] as const) both.push(await seed(rig, name, plan[name], chance));
    const [few, many] = both;
    if (!few || !many) throw new Error('nothing was seeded');
    const rows: Row[] = [];
    for (const page of PAGES) rows.push(await compare(few, many, page, plan.rounds));
    return rows;
  } finally {
    for (const { server, agent, data } of both) {
      agent.destroy();
      await server.stop();
      rmSync(data, { recursive: true });
    }
  }
}
