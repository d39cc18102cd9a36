// Waits for the line of JSON that `gpd demo --json` prints into FILE, then requests four pages. usage: node .ci/smoke.mjs FILE
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const [file = ''] = process.argv.slice(2);
const DEADLINE_MS = 60_000;
const startedAt = Date.now();

async function shopUrl() {
  while (Date.now() - startedAt < DEADLINE_MS) {
    const line = readFileSync(file, 'utf8')
      .split('\n')
      .find((text) => text.startsWith('{'));
    if (line) return JSON.parse(line).urls.shop;
    await sleep(100);
  }
  throw new Error('the demo did not say where it listens');
}

const shop = await shopUrl();
for (const url of [
  shop,
  new URL('/healthz', shop),
  new URL('/v1/agent.js', shop),
  new URL('/v1/embed.js', shop),
]) {
  const answer = await fetch(url);
  const { length } = await answer.text();
  console.log(`${answer.status} ${new URL(url).pathname} ${length} characters`);
  if (answer.status !== 200 || length === 0) process.exitCode = 1;
}
