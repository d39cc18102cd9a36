import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, PURPOSE, startApi } from '../consent/app/support/api.ts';
import { KID } from '../support/constants.ts';
import { INGEST } from '../support/expect.ts';
import { ask, openWire } from '../support/http.ts';
import { createBundle } from '../support/seal.ts';

/** Headers that come twice: whoever stands in front may have looked at the other one. */

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

/** Header lines as they are, which no client library sends twice. */
async function statusOf(line: string, headers: readonly string[], body?: unknown): Promise<number> {
  const wire = await openWire(Number(new URL(api.gpd.url).port));
  const text = body === undefined ? '' : JSON.stringify(body);
  const type = body === undefined ? [] : ['Content-Type: application/json'];
  const head = ['Host: x', 'Connection: close', ...type, `Content-Length: ${text.length}`, ...headers];
  wire.send(`${line} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${text}`);
  const answer = (await wire.closed).text;
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
}

describe('Authorization', () => {
  const routes: readonly (readonly [string, unknown, number])[] = [
    ['POST /v1/consent/can-process', { principalId: 'a', purpose: PURPOSE }, 200],
    ['POST /v1/consent/state', { principalId: 'a' }, 200],
    ['POST /v1/sessions', { principalId: 'a' }, 201],
    ['GET /v1/ledger/checkpoint', undefined, 200],
    ['GET /v1/decisions/req_00000000000000000000000000', undefined, 404],
  ];

  it.each(routes)('%s: one is heard, two are none', async (line, body, status) => {
    const good = `Authorization: Bearer ${api.keys.secret}`;
    const bad = 'authorization: Bearer x';
    expect(await statusOf(line, [good], body)).toBe(status);
    for (const headers of [
      [good, good],
      [good, bad],
      [bad, good],
      [good, 'AUTHORIZATION:'],
    ]) {
      expect(await statusOf(line, headers, body), headers.join(' and ')).toBe(401);
    }
  });
});

describe('Sec-GPC', () => {
  it.each([
    [['Sec-GPC: 1'], 451],
    [['Sec-GPC: 0', 'Sec-GPC: 1'], 451],
    [['Sec-GPC: 1', 'Sec-GPC: 1'], 451],
    [['Sec-GPC: 0', 'Sec-GPC: 0'], 200],
  ])('%j: any that asks is heard', async (headers, status) => {
    const { publicKey } = (await ask(api.gpd.url, `/_fp/pubkey?kid=${KID}`)).json() as { publicKey: string };
    const body = createBundle({ kid: KID, publicKey: Buffer.from(publicKey, 'base64') });
    expect(await statusOf(`POST ${INGEST}`, headers, body)).toBe(status);
  });
});
