import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Router } from 'express';
import { Refusal } from '../lib/errors.ts';
import type { JobPort, JobView } from './ports-dpo.ts';
import type { Render } from './render.ts';
import type { Desk, Visit } from './session-guard.ts';

/** The page of a job: it reloads itself until there is something to fetch or to read. */

const JOB_ID = /^[0-9a-f]{32}$/;
const RELOAD_SECONDS = 2;

export function jobPages(router: Router, jobs: JobPort, desk: Desk, render: Render): void {
  async function read({ request, staff }: Visit): Promise<JobView> {
    const { id } = request.params;
    const job = typeof id === 'string' && JOB_ID.test(id) ? await jobs.get(staff, id) : null;
    if (!job) throw new Refusal('not-found');
    return job;
  }

  router.get(
    '/jobs/:id',
    desk.page('reviewer', async (visit) => {
      const job = await read(visit);
      const refresh = job.state === 'running' ? RELOAD_SECONDS : null;
      const here = job.kind === 'export' ? 'subjects' : 'ledger';
      render(visit.response, 'job', { here, job, refresh });
    }),
  );

  router.get(
    '/jobs/:id/file',
    desk.page('dpo', async (visit) => {
      const { file, id } = await read(visit);
      if (!file) throw new Refusal('not-found');
      visit.response.set({
        'content-type': file.type,
        'content-length': String(file.bytes),
        'content-disposition': `attachment; filename="${file.name}"`,
        'cache-control': 'no-store',
      });
      await pipeline(Readable.from(jobs.read(visit.staff, id)), visit.response);
    }),
  );
}
