import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { missingPostgres } from '../../support/postgres.ts';
import { describeWithTool } from '../../support/tools.ts';

const SUPPORT = new URL('../../support/postgres.ts', import.meta.url).href;
/** The process that starts the suites: it shares a PostgreSQL, and a test has failed. */
const SCRIPT = `
import { offerPostgres } from '${SUPPORT}';
const shared = await offerPostgres();
await (await fetch(shared.url + '/fresh')).text();
process.exitCode = 1;
await shared.end();
`;

describeWithTool('the process that shares a PostgreSQL', await missingPostgres(), () => {
  it('ends with the code of what failed', async () => {
    const args = ['--import', 'tsx', '--input-type=module', '-e', SCRIPT];
    const child = spawn(process.execPath, args, { stdio: 'ignore' });
    expect(await once(child, 'exit')).toEqual([1, null]);
  });
});
