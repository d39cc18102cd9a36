import { beforeAll, describe, expect, it } from 'vitest';
import { ORIGIN } from '../support/constants.ts';
import { expectCore, post } from '../support/expect.ts';
import { desktopChrome } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { started } from '../support/started.ts';
import { apiKey, startRights } from './support/rights.ts';

/** A verdict is bound to what the page named: `identify({ context })` (contract-2 section 20). */

const rights = started(() => startRights());
let secret: string;
beforeAll(async () => {
  secret = await apiKey(rights, 'secret');
});

const device = '5'.repeat(32);
function send(parts: object) {
  const bundle = createBundle(rights.acme, { signals: desktopChrome(device), ...parts });
  return post(rights.gpd.url, bundle, { origin: ORIGIN });
}
const decision = async (requestId: string) => (await rights.decision(requestId, secret)).json();

describe('the context of a bundle', () => {
  it.each(['order-17', 'AZaz09._:-', '.', 'x'.repeat(64)])(
    'is stored with the decision: %s',
    async (context) => {
      const answer = expectCore(await send({ context }), 'ok');
      expect(answer).not.toHaveProperty('context');
      expect(await decision(answer.requestId)).toMatchObject({ context, class: 'human' });
    },
  );

  it('is absent without one', async () => {
    const { requestId } = expectCore(await send({}), 'ok');
    expect(await decision(requestId)).not.toHaveProperty('context');
  });

  it.each(['', 'x'.repeat(65), 'order 17', 'bestellung-ä', 'a\n', 17, null, {}])(
    'makes a bundle malformed: %j',
    async (context) => {
      expectCore(await send({ context }), 'decrypt-failed');
    },
  );

  it('is exported with the decision, and erased with it', async () => {
    const { requestId, visitorId } = await rights.visit({ device: '4'.repeat(32) });
    const named = expectCore(
      await send({ context: 'order-18', signals: desktopChrome('4'.repeat(32)) }),
      'ok',
    ).requestId;
    const claims = { gpd_role: 'subject', sub: 'somebody-with-an-order', gpd_visitor: visitorId };
    const token = await rights.as(claims);
    const { decisions } = (await rights.call('/privacy/dsar', {}, token)).json() as {
      decisions: { requestId: string; context: string | null }[];
    };
    const contexts = decisions.map(({ requestId: id, context }) => [id, context]);
    expect(contexts).toEqual(
      expect.arrayContaining([
        [named, 'order-18'],
        [requestId, null],
      ]),
    );
    await rights.call('/privacy/erase', {}, token);
    expect(await rights.sql("SELECT 1 FROM decisions WHERE verdict LIKE '%order-18%'")).toEqual([]);
  });
});
