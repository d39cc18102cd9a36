import { bannerAnswer } from '../consent/banner-service.ts';
import type { Embed } from '../consent/embed.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import { listPolicies } from '../consent/terms-store.ts';
import type { Database } from '../db/db.ts';
import { ruleText } from '../ingest/classify/policy.ts';
import { type Clock, DAY } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { readHead } from '../log/read-store.ts';
import { makeLogService } from '../log/service.ts';
import { verifyLog } from '../log/verify-service.ts';
import { COUNT_CAP, openByDue } from '../rights/contests/queue-store.ts';
import { oldestDecision } from '../rights/dsar/trail-store.ts';
import { readTallies, ruleReviews, talliedUntil } from '../rights/tally-store.ts';
import { readKeyTraffic } from '../tenants/key-traffic-store.ts';
import { makeSealKeyStore } from '../tenants/seal-key-store.ts';
import { makeTenantStore } from '../tenants/tenant-store.ts';
import type { Jobs } from './jobs-service.ts';
import type { GenerationView, InsightPort } from './ports-insight.ts';

/** What the overview, the ledger, the keys and the purposes show. */

export interface InsightDeps {
  readonly database: Database;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly jobs: Jobs;
  /** The banner as it was built. */
  readonly embed: Embed;
  readonly kAnonymityFloor: number;
  readonly clock: Clock;
}

const TRAFFIC_DAYS = 30;

export function makeInsightPort(deps: InsightDeps): InsightPort {
  const { database, tenantOf, jobs, embed, clock } = deps;
  const log = makeLogService({ database, signerOf: (kid) => tenantOf(kid)?.signer, clock });

  async function keys(kid: string): Promise<readonly GenerationView[]> {
    const [generations, traffic] = await Promise.all([
      makeSealKeyStore(database).list(kid),
      readKeyTraffic(database, kid, clock() - TRAFFIC_DAYS * DAY),
    ]);
    const used = new Map(traffic.map((row) => [row.generation, row]));
    return generations.map(({ generation, state, createdAt, publishedAt, retiresAt, destroyedAt }) => ({
      generation,
      state,
      createdAt,
      publishedAt,
      retiresAt,
      destroyedAt,
      bundles: used.get(generation)?.bundles ?? 0,
      lastAt: used.get(generation)?.lastAt ?? null,
    }));
  }

  return {
    async overview({ kid }, from) {
      const now = clock();
      const bounds = [
        [0, now],
        [now, now + 2 * DAY],
        [now + 2 * DAY, now + 7 * DAY],
        [now + 7 * DAY, Number.MAX_SAFE_INTEGER],
      ] as const;
      const [verdicts, consent, countedUntil, due, rules, generations, oldest] = await Promise.all([
        readTallies(database, kid, 'verdict', from.verdicts),
        readTallies(database, kid, 'consent', from.consent),
        talliedUntil(database, kid),
        openByDue(database, kid, bounds),
        ruleReviews(database, kid),
        keys(kid),
        oldestDecision(database, kid),
      ]);
      const [late = 0, two = 0, seven = 0, later = 0] = due;
      return {
        verdicts,
        consent,
        countedUntil,
        due: { late, two, seven, later },
        rules: rules.map((row) => ({ ...row, text: ruleText(row.rule) })),
        keys: generations,
        floor: deps.kAnonymityFloor,
        cap: COUNT_CAP,
        retention: { days: tenantOf(kid)?.settings['retention.days'] ?? 0, oldest },
      };
    },

    async ledger({ kid }) {
      const checkpoint = await log.checkpoint(kid);
      const head = await readHead(database, kid);
      if (!head || checkpoint === null) return null;
      const { origin, vkey, size } = head;
      const isPublic = tenantOf(kid)?.ledgerPublic ?? false;
      return { origin, vkey, size, root: head.root.toString('base64'), checkpoint, isPublic };
    },
    proof: ({ kid }, seq) => log.proof(kid, seq),
    async startVerify(staff) {
      const job = await jobs.open(staff, 'verify', []);
      job.run(async (report) => {
        const head = await readHead(database, staff.kid);
        const total = head?.size ?? 0;
        report(0, total);
        return verifyLog(database, staff.kid, (done) => report(done, total));
      });
      return job.id;
    },
    keys: ({ kid }) => keys(kid),
    async terms({ kid }) {
      const [purposes, policies, { languages }] = await Promise.all([
        makeTenantStore(database).purposes(kid),
        listPolicies(database, kid),
        embed.manifest(),
      ]);
      return { purposes, policies: [...policies].reverse(), languages };
    },
    async banner({ kid }, asked) {
      const tenant = tenantOf(kid);
      const { languages } = await embed.manifest();
      if (!tenant) throw new Refusal('not-found');
      const language = languages.includes(asked) ? asked : 'en';
      const words: unknown = JSON.parse((await embed.files(`${language}.json`)).body.toString());
      return { language, words, banner: bannerAnswer(tenant, { language, gpc: false }) };
    },
  };
}
