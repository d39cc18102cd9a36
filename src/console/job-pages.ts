import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Refusal } from '../lib/errors.ts';
import type { Context } from './context.ts';
import type { JobView } from './jobs-service.ts';
import type { PageTable } from './page-table.ts';
import type { Visit } from './session-guard.ts';

/** The page of a job: it reloads itself until there is something to fetch or to read. */

const JOB_ID = /^[0-9a-f]{32}$/;
const RELOAD_SECONDS = 2;

async function readJob({ jobs }: Context, { request, staff }: Visit): Promise<JobView> {
  const { id } = request.params;
  const job = typeof id === 'string' && JOB_ID.test(id) ? await jobs.get(staff, id) : null;
  if (!job) throw new Refusal('not-found');
  return job;
}

async function showJob(context: Context, visit: Visit): Promise<void> {
  const job = await readJob(context, visit);
  const refresh = job.state === 'running' ? RELOAD_SECONDS : null;
  const here = job.kind === 'export' ? 'subjects' : 'ledger';
  context.render(visit.response, 'job', { here, job, refresh });
}

async function sendFile(context: Context, visit: Visit): Promise<void> {
  const { file, id } = await readJob(context, visit);
  if (!file) throw new Refusal('not-found');
  visit.response.set({
    'content-type': file.type,
    'content-length': String(file.bytes),
    'content-disposition': `attachment; filename="${file.name}"`,
    'cache-control': 'no-store',
  });
  await pipeline(Readable.from(context.jobs.read(visit.staff, id)), visit.response);
}

export const jobPages: PageTable = {
  pages: { '/jobs/:id': ['reviewer', showJob], '/jobs/:id/file': ['dpo', sendFile] },
};
