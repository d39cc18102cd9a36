// What the client adds to a bare fetch. Prints one line of JSON for `npm run bench -- sdk`: the p50 of each round.
import { ConsentClient } from '../dist/index.js';

const number = (name) => Number(process.env[name]);
const url = `${process.env['GPD_CONSENT_URL']}/v1/consent/can-process`;
const key = process.env['GPD_CONSENT_KEY'];
const client = ConsentClient.fromEnv();

const sdk = (principalId) => client.isAllowed({ principalId, purpose: 'newsletter' });

async function bare(principalId) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ principalId, purpose: 'newsletter' }),
  });
  return (await response.json()).allowed;
}

async function p50(call, count) {
  const times = [];
  for (let i = 0; i < count; i += 1) {
    const before = process.hrtime.bigint();
    if ((await call(`person-${i}`)) !== true) throw new Error('it was not allowed');
    times.push(Number(process.hrtime.bigint() - before) / 1000);
  }
  return times.sort((a, b) => a - b)[Math.floor(count / 2)];
}

await p50(sdk, number('BENCH_WARM_UP'));
await p50(bare, number('BENCH_WARM_UP'));
const told = { sdk: [], bare: [] };
for (let round = 0; round < number('BENCH_ROUNDS'); round += 1) {
  told.sdk.push(await p50(sdk, number('BENCH_COUNT')));
  told.bare.push(await p50(bare, number('BENCH_COUNT')));
}
console.log(JSON.stringify(told));
