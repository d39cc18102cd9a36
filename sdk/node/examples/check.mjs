// GPD_CONSENT_URL=http://127.0.0.1:8080 GPD_CONSENT_KEY=gpd_sk_… node check.mjs PRINCIPAL PURPOSE
import { ConsentClient, ConsentError } from '@gpd/consent';

const [principalId = 'u-1', purpose = 'device-identification'] = process.argv.slice(2);

try {
  const consent = ConsentClient.fromEnv();
  const before = await consent.canProcess({ principalId, purpose });
  console.log('before:', before.allowed, before.reason);
  await consent.grant({ principalId, purposes: [purpose] });
  console.log('granted:', await consent.isAllowed({ principalId, purpose }));
  await consent.withdraw({ principalId, purposes: [purpose] });
  console.log('withdrawn:', await consent.isAllowed({ principalId, purpose }));
  await consent.close();
} catch (error) {
  if (!(error instanceof ConsentError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
