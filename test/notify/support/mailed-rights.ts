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
  const stop = async (): Promise<void> => {
    await rights.stop();
    await relay.stop();
  };
  return { relay, rights, stop };
}
