import { DAY, MINUTE } from '../lib/clock.ts';
import type { Job } from '../lib/jobs.ts';
import type { Installation } from '../tenants/directory.ts';
import { purgeOutbox } from './outbox-store.ts';
import { tellSafeguards } from './safeguards-service.ts';

/** Delivered and failed events can be sent again for this time. */
const OUTBOX_MS = 7 * DAY;

export const notifyJobs = ({
  database,
  tenantOf,
}: Pick<Installation, 'database' | 'tenantOf'>): readonly Job[] => [
  { name: 'purge-outbox', every: MINUTE, run: ({ until }) => purgeOutbox(database, until - OUTBOX_MS) },
  {
    name: 'tell-safeguards',
    every: MINUTE,
    each: async (kid) => {
      const tenant = tenantOf(kid);
      if (tenant) await tellSafeguards(database, tenant);
    },
  },
];
