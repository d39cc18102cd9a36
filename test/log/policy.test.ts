import { expect, it } from 'vitest';
import { KID } from '../support/constants.ts';
import { startGpd } from '../support/server.ts';
import { createCosigner } from './cosigner.ts';

/** The policy of a log as C2SP tlog-policy; a parser that is not ours reads it in heavy/readers.test.ts. */

const [first, second] = [1, 2].map((n) => createCosigner('same.example/w', Buffer.alloc(32, n)).vkey);

async function policyUnder(settings: Record<string, string>) {
  const gpd = await startGpd({ settings });
  try {
    const { stdout } = await gpd.cli(['witness', 'policy', KID]);
    const { policy } = await gpd.json<{ policy: string }>(['witness', 'policy', KID]);
    expect(stdout).toBe(policy);
    expect((await gpd.cli(['witness', 'policy', 'nobody'])).code).toBe(3);
    return policy.split('\n');
  } finally {
    await gpd.stop();
  }
}

it('names the log, and no quorum without witnesses', async () => {
  const [log, ...rest] = await policyUnder({});
  expect(log).toMatch(/^log \S+\+[0-9a-f]{8}\+\S+$/);
  expect(rest).toEqual(['quorum none', '']);
});

it('names each witness with its address, also two of one name, and how many must cosign', async () => {
  const witnesses = `${first}@http://127.0.0.1:9/a,${second}@http://127.0.0.1:9/b`;
  const [, ...rest] = await policyUnder({ GPD_WITNESSES: witnesses, GPD_WITNESS_POLICY: '1' });
  expect(rest).toEqual([
    `witness w1 ${first} http://127.0.0.1:9/a`,
    `witness w2 ${second} http://127.0.0.1:9/b`,
    'group witnesses 1 w1 w2',
    'quorum witnesses',
    '',
  ]);
});
