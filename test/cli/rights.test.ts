import { expect, it } from 'vitest';
import { runGpd } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { initGpd } from '../support/server.ts';

it('gpd rights notice prints the notices of one tenant, and says which tenant is not there', async () => {
  const { dataDir } = await initGpd([{ kid: KID, origins: [ORIGIN] }]);
  const env = { GPD_DATA_DIR: dataDir, GPD_BASE_URL: 'https://id.shop.example' };
  const result = await runGpd(['tenants', 'set', KID, 'notice.controller=Shop Ltd', 'rights.profile=ccpa'], {
    env,
  });
  expect(result.code).toBe(0);
  const text = await runGpd(['rights', 'notice', KID], { env });
  expect(text).toMatchObject({ code: 0, stderr: '' });
  expect(text.stdout.match(/^## .*/gm)).toHaveLength(3);
  expect(text.stdout).toContain(`Shop Ltd uses automated decision-making technology on ${ORIGIN}.`);
  expect(text.stdout).toContain(`https://id.shop.example/my-data?kid=${KID}`);
  expect(text.stdout).toContain('within 45 days');
  const { stdout } = await runGpd(['rights', 'notice', KID, '--json'], { env });
  expect(JSON.parse(stdout)).toMatchObject({
    kid: KID,
    notices: [{ id: 'admt' }, { id: 'gdpr' }, { id: 'art30' }],
  });
  expect(await runGpd(['rights', 'notice', 'nobody'], { env })).toMatchObject({ code: 3 });
});
