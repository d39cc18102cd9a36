import { beforeAll, expect, it } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { changesContract } from './changes.ts';
import { consentContract, nonceContract } from './consent.ts';
import { ledgerContract } from './ledger.ts';

const NODES = 4;

/** A client cannot know which of the four nodes answers, so all of them must agree. */
export function clusterContract(pooled: boolean): void {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ nodes: NODES, pooled });
    return () => cluster.stop();
  });
  const clusterOf = (): Cluster => cluster;
  nonceContract(clusterOf);
  consentContract(clusterOf);
  changesContract(clusterOf);
  ledgerContract(clusterOf);

  it('did all of that without a fault or a deadlock', () => {
    expect(cluster.faults()).toEqual([]);
  });
}
