import { expect, it } from 'vitest';
import { noteRefusal } from '../../src/http/reply.ts';
import { createLogger, logRefusals } from '../../src/ops/log-service.ts';
import { addApiKey } from '../support/api-key.ts';
import { post } from '../support/expect.ts';
import { ask, JSON_TYPE } from '../support/http.ts';
import { createBundle } from '../support/seal.ts';
import { startGpd } from '../support/server.ts';

it('the log names what is set up wrongly, once each, with what to do, and no key', async () => {
  const gpd = await startGpd();
  const secret = await addApiKey(gpd);
  const unknown = `gpd_pk_${'A'.repeat(43)}`;
  for (let i = 0; i < 2; i += 1) {
    const check = (authorization: string, headers = {}) =>
      ask(gpd.url, '/v1/consent/can-process', {
        method: 'POST',
        headers: { ...JSON_TYPE, authorization: `Bearer ${authorization}`, ...headers },
        body: '{}',
      });
    await check(unknown, { origin: 'https://stranger.example' });
    await check(secret, { 'sec-fetch-site': 'same-origin' });
    await ask(gpd.url, '/_fp/pubkey?kid=nobody-here');
    await post(gpd.url, createBundle({ ...gpd.targets[0]!, kid: 'nobody-here' }));
  }
  await gpd.stop();
  for (const [event, hint] of [
    ['refused-unknown-origin', 'https://stranger.example'],
    ['refused-unknown-kid', 'nobody-here'],
    ['refused-unknown-key', 'gpd apikeys list'],
    ['refused-secret-key-in-page', 'came from a page, or with the headers of one'],
  ] as const) {
    const [, ...lines] = gpd.logs().split(`"event":"${event}"`);
    expect(lines, event).toEqual([expect.stringContaining(hint)]);
  }
  expect(gpd.logs()).not.toMatch(/gpd_pk_A|gpd_sk_/);
});

it('the log repeats a refusal after a minute', () => {
  const lines: string[] = [];
  let now = 0;
  const stop = logRefusals(createLogger('info', { write: (line) => void lines.push(line) }), () => now);
  for (const at of [0, 59_999, 60_000, 60_001]) {
    now = at;
    noteRefusal('unknown-kid', `a\n\u001b${'x'.repeat(200)}`);
  }
  stop();
  noteRefusal('unknown-kid', 'b');
  expect(lines[0]).toMatch(/"refused":"a%0A%1Bx{97}"/);
  expect(lines).toHaveLength(2);
});
