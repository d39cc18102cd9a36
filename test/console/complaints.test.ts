import { expect, it } from 'vitest';
import { WORDS } from '../../src/console/words.ts';
import { contestTextsOf, fileContest } from '../../src/rights/contests/contest.ts';
import { insertContest } from '../../src/rights/contests/store.ts';
import { KID, REASON } from '../support/constants.ts';
import { started } from '../support/started.ts';
import { signIn, startConsole } from './support/console.ts';
import { change } from './support/data.ts';

/** A reviewer acknowledges and answers a complaint. */

const site = started(() => startConsole());
const ada = started(() => signIn(site.url, 'ada'));

it('a complaint is told apart in the queue, acknowledged, asked about and answered', async () => {
  const { requestId } = await site.decide();
  const contestId = 'con_01KAG000000000000000000C00';
  const complaint = fileContest(
    {
      kind: 'complaint',
      kid: KID,
      contestId,
      requestId,
      durable: null,
      class: 'human',
      filedBy: 'p',
      statement: null,
    },
    Date.now(),
    'uk',
  );
  // Without a text nothing is encrypted.
  await change(site, (tx) =>
    insertContest(
      tx,
      contestTextsOf(() => undefined),
      complaint,
    ),
  );
  expect((await ada.get('/console/queue')).text).toMatch(/>\s*Complaint\s*</);

  const path = `/console/contests/${contestId}`;
  const received = (await ada.get(path)).text;
  expect(received).toContain('By law within 30 days of receipt');
  expect(received).toMatch(/due in 29 days|due in 30 days/);
  expect(received).not.toMatch(/[Oo]verturn|undefined/);

  expect((await ada.act(`${path}/acknowledge`)).status).toBe(303);
  const acknowledged = (await ada.get(path)).text;
  expect(acknowledged).toContain(WORDS.caseDone.acknowledged);
  expect(acknowledged).not.toContain('By law within 30 days');

  expect((await ada.act(`${path}/ask`, { question: 'On which day did you see that?' })).status).toBe(303);
  expect((await ada.get(path)).text).toContain('On which day did you see that?');

  const refused = await ada.act(`${path}/answer`, { text: 'short' });
  expect(refused.status).toBe(400);
  expect(refused.text).toContain('An outcome has 20 to 4,000 characters');
  expect((await ada.act(`${path}/answer`, { text: REASON })).status).toBe(303);
  const answered = (await ada.get(path)).text;
  expect(answered).toContain(WORDS.caseDone.complaintAnswered);
  expect(answered).toContain(REASON);
  expect(answered).not.toMatch(/id="work"|undefined|decision stands/);
  expect((await ada.get('/console/queue?state=resolved')).text).toMatch(/>\s*Answered\s*</);
});
