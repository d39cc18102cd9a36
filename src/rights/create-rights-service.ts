import { DAY, HOUR, MINUTE } from '../lib/clock.ts';
import type { Job } from '../lib/jobs.ts';
import type { Installation } from '../tenants/directory.ts';
import { type ContestTexts, contestTextsOf } from './contests/contest.ts';
import { recordEnded } from './erase/ended-store.ts';
import { createEraseService, type EraseService } from './erase/erase-service.ts';
import { dropOldErasureLines, erasureLogAccess } from './erase/erasure-log-service.ts';
import { linkedPrincipal } from './link-store.ts';
import { notifyDueContests, notifyUnfinishedErasures } from './notices-store.ts';
import { RETENTION_JOB, retainTenant } from './retention/store.ts';
import { createRightsApi, type RightsApi } from './service.ts';
import { tally } from './tally-store.ts';
import { sweepOrphans } from './tenant-rows-store.ts';

/**
 * Connects contests, erasures, exports and /me, for the server, the console and the commands; with their
 * jobs.
 */

export interface Rights {
  readonly eraser: EraseService;
  /** Decides who may act on whose data. */
  readonly api: RightsApi;
  /** Encrypts and decrypts the texts of contests. */
  readonly contestTexts: ContestTexts;
  /** @returns the principal that a request is linked with, or null */
  readonly linkedTo: (kid: string, requestId: string) => ReturnType<typeof linkedPrincipal>;
}

export interface RightsOptions {
  /** Gets the error that delayed an erasure after its rows were deleted; the job finishes it. */
  readonly onErasureFault: (error: unknown) => void;
  /** Milliseconds that an answer waits for an erasure before it says `pending`; the server has a default. */
  readonly patienceMs?: number | undefined;
}

/** The services of people's rights, made once for the API, the console and the command line. */
export function createRights(
  parts: Omit<Installation, 'keyUse' | 'tenants'>,
  { onErasureFault, patienceMs }: RightsOptions,
): Rights {
  const { config, database, tenantOf } = parts;
  const eraser = createEraseService({
    ...parts,
    ...erasureLogAccess(parts, config),
    rewriteWindow: config.rewrite_window,
    onFault: onErasureFault,
    ...(patienceMs === undefined ? {} : { patienceMs }),
  });
  const contestTexts = contestTextsOf(tenantOf);
  const deps = { ...parts, contestTexts };
  return {
    eraser,
    api: createRightsApi({ ...deps, eraser }),
    contestTexts,
    linkedTo: (kid, requestId) => linkedPrincipal(database, kid, requestId),
  };
}

/**
 * The jobs that keep what a person was promised: deletion in time, notices of due dates, and erasures that
 * end.
 * @param eraseAgain applies what a standby that took over does not know
 */
export function rightsJobs(
  services: Omit<Installation, 'keyUse' | 'tenants'> & {
    readonly rights: Pick<Rights, 'eraser' | 'contestTexts'>;
  },
  eraseAgain: () => Promise<void>,
): readonly Job[] {
  const { config, database, clock, tenantOf } = services;
  const { eraser, contestTexts } = services.rights;
  const logAccess = erasureLogAccess(services, config);
  const notices = { ...services, contestTexts };
  return [
    { name: 'tally', every: MINUTE, each: (kid, { until }) => tally(database, kid, until) },
    // After the job that destroys seal keys: each end is a line of erasures.log.
    { name: 'record-ended', every: MINUTE, run: () => recordEnded(logAccess, clock()) },
    {
      name: 'resume-erasures',
      every: MINUTE,
      async together() {
        await eraseAgain();
        return (await eraser.resumeStale()).failures;
      },
    },
    { name: 'tell-due', every: MINUTE, each: (kid, { until }) => notifyDueContests(notices, kid, until) },
    {
      name: 'tell-unfinished',
      every: MINUTE,
      each: (kid, { until }) => notifyUnfinishedErasures(notices, kid, until),
    },
    {
      name: RETENTION_JOB,
      every: HOUR,
      each: (kid, { until, shouldContinue }) =>
        retainTenant(database, kid, until, { shouldContinue, macs: tenantOf(kid)?.stateMac }),
    },
    {
      name: 'drop-old-erasures',
      every: HOUR,
      run: ({ until }) => dropOldErasureLines(logAccess, until - config.erasure_lines_days * DAY),
    },
    { name: 'release-pages', every: HOUR, run: () => eraser.releasePages() },
    { name: 'sweep-orphans', every: HOUR, run: () => sweepOrphans(database) },
  ];
}
