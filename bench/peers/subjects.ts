import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { PURPOSE, principalId } from '../lib/principals.ts';
import { note } from '../lib/report.ts';
import { drive, type JsonRequest, writeRequests } from '../lib/requests.ts';
import type { Rig } from '../lib/rig.ts';
import { seededRandom } from '../lib/stats.ts';
import { measureServer, type Subject } from '../lib/subjects.ts';
import { installPeer, type Peer } from './install.ts';
import { startC15t, startCerbos } from './start.ts';

/** Others that answer the same question, asked in their own words: is there a live consent of this person? */

export interface ConsentPlan {
  readonly rounds: number;
  readonly warmUp: number;
  readonly count: number;
  /** Of the open loop. */
  readonly open: number;
  /** How many people there are: the others are measured against the first. */
  readonly populations: readonly number[];
  readonly grants: number;
  readonly seed: number;
  readonly peers: boolean;
}

export interface PeerSubjects {
  readonly subjects: readonly Subject[];
  /** Why a subject is not there. */
  readonly missing: ReadonlyMap<string, string>;
}

/** A peer is asked less often: its figures are steady, and it takes its time. */
const PART = 4;

const grantCountOf = (plan: ConsentPlan): number => plan.grants / PART;

/** c15t takes ids in base58, which has no zero. */
function c15tGrant(i: number): JsonRequest {
  const body = {
    type: 'cookie_banner',
    subjectId: `sub_${String(i).replaceAll('0', 'A')}`,
    externalSubjectId: principalId(i),
    identityProvider: 'bench',
    domain: 'shop.example',
    preferences: { necessary: true, measurement: true },
    givenAt: Date.now(),
  };
  return { path: '/subjects', headers: { Origin: 'https://shop.example' }, body };
}

async function c15tSubjects(rig: Rig, plan: ConsentPlan): Promise<Subject[]> {
  const folder = await installPeer('c15t', rig.directory);
  const [people = 1] = plan.populations;
  const [warmUp, count, open] = [plan.warmUp / PART, plan.count / PART, plan.open / PART];
  const later = Math.round(grantCountOf(plan) / 2);
  const grantCount = grantCountOf(plan);
  const written = Math.max(people, 2 * grantCount + later);
  const grants = await writeRequests(join(rig.directory, 'c15t-grants'), written, c15tGrant);
  const random = seededRandom(plan.seed);
  const checks = await writeRequests(join(rig.directory, 'c15t-checks'), warmUp + count + open, () => {
    const id = encodeURIComponent(principalId(Math.floor(random() * people)));
    return { path: `/consents/check?externalId=${id}&type=cookie_banner` };
  });
  const file = join(rig.directory, 'c15t.db');
  const server = await startC15t(folder, file);
  try {
    await drive(server.port, { file: grants, skip: 0, count: people, status: 200 });
  } finally {
    await server.stop();
  }
  return [
    {
      name: 'c15t',
      run: async () => {
        const asked = { file: checks, status: 200, warmUp, count, open };
        return measureServer(await startC15t(folder, file), asked);
      },
    },
    {
      name: 'c15t grants',
      async run() {
        const fresh = join(rig.directory, 'c15t-grants.db');
        for (const suffix of ['', '-wal', '-shm']) rmSync(fresh + suffix, { force: true });
        const asked = { file: grants, status: 200, warmUp: grantCount, count: grantCount, open: later };
        return measureServer(await startC15t(folder, fresh), asked);
      },
    },
  ];
}

async function cerbosSubjects(rig: Rig, plan: ConsentPlan): Promise<Subject[]> {
  const folder = await installPeer('cerbos', rig.directory);
  const [people = 1] = plan.populations;
  const random = seededRandom(plan.seed);
  const attr = { choice: 'granted', expiresAt: '2099-01-01T00:00:00Z' };
  const resource = { kind: 'processing', id: PURPOSE };
  const file = await writeRequests(
    join(rig.directory, 'cerbos-checks'),
    plan.warmUp + plan.count + plan.open,
    () => {
      const principal = { id: principalId(Math.floor(random() * people)), roles: ['person'], attr };
      return {
        path: '/api/check/resources',
        body: { principal, resources: [{ actions: [PURPOSE], resource }] },
      };
    },
  );
  const { warmUp, count, open } = plan;
  const asked = { file, status: 200, warmUp, count, open };
  return [{ name: 'cerbos', run: async () => measureServer(await startCerbos(folder), asked) }];
}

const MAKERS: Readonly<Record<Peer, (rig: Rig, plan: ConsentPlan) => Promise<Subject[]>>> = {
  c15t: c15tSubjects,
  cerbos: cerbosSubjects,
};
const NAMES: Readonly<Record<Peer, readonly string[]>> = {
  c15t: ['c15t', 'c15t grants'],
  cerbos: ['cerbos'],
};

/** A peer that does not install or start is missing, and the run goes on. */
export async function makePeerSubjects(rig: Rig, plan: ConsentPlan): Promise<PeerSubjects> {
  const subjects: Subject[] = [];
  const missing = new Map<string, string>();
  for (const peer of ['c15t', 'cerbos'] as const) {
    try {
      if (!plan.peers) throw new Error('--peers');
      note(`consent: installing ${peer}`);
      subjects.push(...(await MAKERS[peer](rig, plan)));
    } catch (error) {
      const why = (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
      for (const name of NAMES[peer]) missing.set(name, why);
    }
  }
  return { subjects, missing };
}
