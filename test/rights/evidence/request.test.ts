import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempDir } from '../../support/command.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { started } from '../../support/started.ts';
import { apiKey, startRights, type Visit } from '../support/rights.ts';
import { linesOf, PERIOD, unpackParts } from './support.ts';

/** `gpd evidence --request` (contract-2 section 23): a visit leads to the principal that it is linked with. */

const rights = started(() => startRights());

async function readFileOf({ requestId }: Pick<Visit, 'requestId'>) {
  const file = join(tempDir('out'), 'request.zip');
  const ran = await rights.gpd.cli(['evidence', KID, ...PERIOD, '--request', requestId, '--out', file]);
  expect(ran).toMatchObject({ code: 0 });
  return unpackParts(file).parts;
}

it('has the openings of the principal that a request is linked with, without the id; none without a link', async () => {
  const secret = await apiKey(rights, 'secret');
  for (const principalId of ['linda', 'bob']) {
    const grant = { principalId, purposes: ['device-identification'] };
    expect((await rights.call('/v1/consent/grant', grant, secret)).status).toBe(201);
  }
  const visit = await rights.visit();
  const unlinked = await readFileOf(visit);
  expect(unlinked.get('openings.ndjson')?.length).toBe(0);
  expect(unlinked.get('README.html')?.toString()).toContain('the person behind one visit');

  const session = (await rights.call('/v1/sessions', { principalId: 'linda' }, secret)).json();
  const { token } = session as { readonly token: string };
  const headers = { cookie: `gp_session=${visit.session}`, origin: ORIGIN };
  const linked = await rights.call('/v1/principals/link', { token: visit.token }, token, headers);
  expect(linked.status).toBe(201);
  const parts = await readFileOf(visit);
  const openings = linesOf(parts.get('openings.ndjson'));
  expect(openings).toHaveLength(1);
  expect(openings[0]).toMatchObject({ principalId: null });
  for (const [name, bytes] of parts)
    for (const id of ['linda', 'bob']) expect(bytes.includes(id), `${id} in ${name}`).toBe(false);
});
