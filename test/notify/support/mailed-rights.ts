import { expect, vi } from 'vitest';
import { startRights } from '../../rights/support/rights.ts';
import { KID } from '../../support/constants.ts';
import { startRelay } from './relay.ts';

/** A server whose mails a real SMTP server keeps, with one setting of the tenant. */
export async function startMailedRights(setting: string) {
  const relay = await startRelay();
  const rights = await startRights({
    settings: { GPD_SMTP_URL: relay.url, GPD_SMTP_FROM: 'gpd@acme.example' },
    app: { intervals: { webhooks: 20, housekeeping: 50 } },
  });
  await rights.gpd.json(['tenants', 'set', KID, setting]);
  const endRest = () => rights.sql("UPDATE webhook_outbox SET next_at = 0 WHERE state = 'delivered'");
  /**
   * Takes the mails about changed safeguards away, and the hour that the address rests after one: set-up
   * weakens some, and its mail would be the first of the hour.
   */
  const forgetSafeguards = async (): Promise<void> => {
    await vi.waitFor(async () => {
      await endRest();
      const waiting = await rights.sql(`SELECT kid FROM audit_log WHERE unsent = 1
        UNION ALL SELECT kid FROM webhook_outbox WHERE state = 'waiting'`);
      expect(waiting).toEqual([]);
    });
    await endRest();
    relay.mails.splice(0);
  };
  await forgetSafeguards();
  const stop = async (): Promise<void> => {
    await rights.stop();
    await relay.stop();
  };
  return { relay, rights, forgetSafeguards, stop };
}
