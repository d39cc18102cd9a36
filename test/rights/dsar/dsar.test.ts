import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RULES } from '../../../src/ingest/verdict/classify.ts';
import { KID } from '../../support/constants.ts';
import { type Rights, startRights, type Visit } from '../support/rights.ts';

let rights: Rights;
beforeAll(async () => {
  rights = await startRights();
});
afterAll(() => rights.stop());

interface Dsar {
  readonly subject: Record<string, unknown>;
  readonly generatedAt: string;
  readonly decisions: readonly {
    readonly requestId: string;
    readonly class: string;
    readonly rules: readonly {
      readonly id: string;
      readonly weight: number;
      readonly kind: string;
      readonly text: string;
    }[];
    readonly whatWouldHaveChanged: {
      readonly text: string;
      readonly decisive: readonly { readonly id: string }[];
    };
    readonly [more: string]: unknown;
  }[];
  readonly override: unknown;
  readonly contests: readonly Record<string, unknown>[];
  readonly consent: Record<string, unknown> | null;
  readonly notice: Record<string, string>;
}

const subject = (visit: Visit, sub = 'anna'): Promise<string> =>
  rights.as({ gpd_role: 'subject', sub, gpd_visitor: visit.visitorId });

async function dsar(token: string): Promise<Dsar> {
  const reply = await rights.call('/privacy/dsar', {}, token);
  expect({ status: reply.status, text: reply.text.slice(0, 200) }).toMatchObject({ status: 200 });
  return reply.json() as Dsar;
}

describe('POST /privacy/dsar', () => {
  it('explains each decision by the rules that fired, in plain words, and says what would have changed it', async () => {
    const visit = await rights.visit({ bot: true });
    const { decisions } = await dsar(await subject(visit));
    expect(decisions).toHaveLength(1);
    const [decision] = decisions;
    expect(decision).toMatchObject({
      requestId: visit.requestId,
      class: 'undeclared_automation',
      visitorId: visit.visitorId,
      suspectScore: visit.answer.suspectScore,
      restricted: false,
      contestId: null,
    });
    expect(decision?.rules.length).toBeGreaterThan(0);
    for (const { id, kind, text } of decision?.rules ?? []) {
      expect(['A', 'T', 'M', 'W']).toContain(kind);
      expect(text).toBe(RULES.find((rule) => rule.id === id)?.text);
      expect(text.length).toBeGreaterThan(15);
    }
    expect(decision?.whatWouldHaveChanged.text).toMatch(/the result would have been/);
    expect(decision?.['policyVersion']).toMatch(/^20/);
    // Neither needs what this installation may lack: an account.
    expect(decision?.['howToContest']).toMatch(
      /POST \/me .*contest; with an account .*POST \/privacy\/contest/,
    );
  });

  it('names where webhooks send notices, unless the settings say who receives data', async () => {
    const token = await subject(await rights.visit(), 'wanda');
    const noticeNow = async () =>
      ((await dsar(token)) as unknown as { notice: Record<string, string> }).notice;
    expect((await noticeNow())['recipients']).toMatch(/^Only the operator/);
    const { id } = await rights.gpd.json<{ id: string }>([
      'webhooks',
      'add',
      KID,
      'https://hooks.partner.example/x',
    ]);
    const notice = await noticeNow();
    expect(notice['recipients']).toContain('hooks.partner.example');
    expect(notice['transfers']).toContain('hooks.partner.example');
    await rights.gpd.json(['webhooks', 'remove', KID, id, '--yes']);
  });

  it('explains an old verdict by what its rules counted as, whatever they count as today', async () => {
    const visit = await rights.visit();
    const rules = ['W1', 'W2'].map((id) => ({ id, weight: 0.15, kind: 'M' }));
    const change = { class: 'undeclared_automation', rules, policyVersion: '2025-01-01.1' };
    const [row] = await rights.sql(`SELECT verdict FROM decisions WHERE request_id = '${visit.requestId}'`);
    const verdict = { ...(JSON.parse(String(row?.['verdict'])) as object), ...change };
    await rights.sql(
      `UPDATE decisions SET verdict = '${JSON.stringify(verdict)}' WHERE request_id = '${visit.requestId}'`,
    );
    const { decisions } = await dsar(await subject(visit, 'olga'));
    expect(decisions[0]).toMatchObject({
      class: 'undeclared_automation',
      rules: [
        { id: 'W1', kind: 'M' },
        { id: 'W2', kind: 'M' },
      ],
      whatWouldHaveChanged: {
        decisive: [
          { id: 'W1', class: 'unknown' },
          { id: 'W2', class: 'unknown' },
        ],
        withoutAll: null,
      },
    });
  });

  it('never tells the durable id, another person’s data or another tenant’s', async () => {
    const visit = await rights.visit();
    const other = await rights.visit();
    const text = (await rights.call('/privacy/dsar', {}, await subject(visit))).text;
    const rows = await rights.sql(`SELECT durable FROM decisions WHERE request_id = '${visit.requestId}'`);
    expect(text).not.toContain(String(rows[0]?.['durable']));
    expect(text).not.toContain(other.requestId);
    expect(text).not.toContain('"durable"');
  });
});
