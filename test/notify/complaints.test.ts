import { describe, expect, it, vi } from 'vitest';
import { mailText } from '../../src/notify/mail-words-files.ts';
import { KID, ORIGIN, REASON } from '../support/constants.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { receive } from '../support/serve.ts';
import { started } from '../support/started.ts';
import { startMailedRights } from './support/mailed-rights.ts';

/** A complaint under rights.profile uk is told by mail and by webhook. */

const DPO = 'dora@acme.example';
const ANNA = 'anna@person.example';
const STATEMENT = 'You kept reading my browser after I had said no.';
const subjectOf = (key: string): string => `${new URL(ORIGIN).host}: ${mailText('en', key)}`;

interface Delivery {
  readonly type: string;
  readonly data: { readonly contestId: string; readonly kind: string };
}

describe('a complaint', () => {
  const server = started(() => startMailedRights(`notify.email=${DPO}`));
  const deliveries: Delivery[] = [];
  const receiver = started(() =>
    receive(({ body }, response) => {
      deliveries.push(JSON.parse(body) as Delivery);
      response.end();
    }),
  );
  const subjectsTo = (address: string): string[] =>
    server.relay.mails.filter(({ to }) => to.includes(address)).map(({ subject }) => subject);

  it('is told to staff and a webhook, its acknowledgement and outcome to the person, and no mail has a word of it', async () => {
    const { rights } = server;
    const { gpd } = rights;
    const events = ['complaint.received', 'complaint.answered'].flatMap((name) => ['--event', name]);
    await gpd.json(['webhooks', 'add', KID, `${receiver.url}/`, '--allow-private', ...events]);
    await server.forgetSafeguards();
    // Last, so that the server that knows of it knows of the webhook too.
    await gpd.json(['tenants', 'set', KID, 'rights.profile=uk']);
    const complainant = await rights.visit({ bot: true });
    const filed = await vi.waitFor(async () => {
      const body = { statement: STATEMENT, email: ANNA };
      const reply = await rights.me(complainant, 'complain', { body });
      expect(reply.status).toBe(202);
      return reply.json() as { contestId: string; caseKey: string };
    }, SEEN_WITHIN);
    await expect.poll(() => subjectsTo(DPO)).toEqual([subjectOf('complaint.received')]);
    // Filing sends nothing to an address that a stranger may have typed.
    expect(subjectsTo(ANNA)).toEqual([]);
    await gpd.json(['contests', 'acknowledge', filed.contestId]);
    await expect.poll(() => subjectsTo(ANNA)).toEqual([subjectOf('person.complaint.acknowledged')]);
    await gpd.json(['contests', 'answer', filed.contestId, '--outcome', REASON]);
    await expect.poll(() => subjectsTo(ANNA)).toContain(subjectOf('person.complaint.answered'));
    await expect
      .poll(() => deliveries.map(({ type }) => type))
      .toEqual(['complaint.received', 'complaint.answered']);
    for (const { data } of deliveries)
      expect(data).toMatchObject({ contestId: filed.contestId, kind: 'complaint' });
    for (const { text } of server.relay.mails)
      for (const secret of [STATEMENT, REASON, filed.caseKey, complainant.visitorId])
        expect(text).not.toContain(secret);
    // A webhook has the record as staff see it.
    expect(JSON.stringify(deliveries)).not.toContain(filed.caseKey);
    expect(JSON.stringify(deliveries)).not.toContain(ANNA);
  });
});
