import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tempDir } from '../../../support/command.ts';
import { KID } from '../../../support/constants.ts';
import { describeWithTool } from '../../../support/tools.ts';
import { PERIOD, type People, startWithPeople, unpackParts } from '../../evidence/support.ts';

/** Receipts under programs that know nothing of gpd: PyLD expands them, pySHACL judges the graph by a shape. */

const PACKAGES = ['PyLD==3.3.0', 'pyshacl==0.40.1', 'rdflib==7.6.0'];
const HERE = fileURLToPath(new URL('jsonld/', import.meta.url));
/** Kept between runs. */
const VENV = fileURLToPath(new URL('../../../../node_modules/.cache/pyshacl-0.40.1', import.meta.url));
const PYTHON = join(VENV, 'bin/python');

function missingValidator(): string | null {
  const isInstalled = () =>
    existsSync(PYTHON) && spawnSync(PYTHON, ['-c', 'import pyld, pyshacl']).status === 0;
  if (isInstalled()) return null;
  if (spawnSync('python3', ['-m', 'venv', VENV]).status !== 0)
    return 'python3 cannot make a virtual environment';
  spawnSync(PYTHON, ['-m', 'pip', 'install', '--quiet', ...PACKAGES], { timeout: 180_000 });
  return isInstalled() ? null : 'pip cannot install pyshacl and PyLD';
}

function validate(document: string) {
  const { status, stdout, stderr } = spawnSync(
    PYTHON,
    [join(HERE, 'validate.py'), document, join(HERE, 'receipt.ttl')],
    { encoding: 'utf8' },
  );
  return { status, stdout, stderr };
}

describeWithTool(
  'rights/receipts/jsonld',
  missingValidator(),
  () => {
    let people: People;
    beforeAll(async () => {
      people = await startWithPeople();
    });
    afterAll(() => people.api.stop());

    async function readDocuments() {
      const file = join(tempDir('out'), 'evidence.zip');
      expect(await people.cli('evidence', KID, ...PERIOD, '--out', file)).toMatchObject({ code: 0 });
      const folder = join(unpackParts(file).directory, 'receipts');
      return readdirSync(folder).map((name) => join(folder, name));
    }

    it('accepts each receipt, of which no value is lost and no term is unknown to the vocabulary', async () => {
      for (const document of await readDocuments()) {
        const judged = validate(document);
        expect(judged).toMatchObject({ status: 0, stderr: '' });
        const { '@graph': graph } = JSON.parse(readFileSync(document, 'utf8')) as { '@graph': object[] };
        expect(JSON.parse(judged.stdout)).toMatchObject({ receipts: graph.length });
      }
    });

    it.each([
      ['a time that is none', '"event_time": "', '"event_time": "x', 'isIndicatedAtTime'],
      ['a state that the vocabulary lacks', 'dpv:ConsentGiven', 'dpv:ConsentMaybe', 'hasConsentStatus'],
      ['a field that the context lacks', '"event_type"', '"event_kind"', ' values have no meaning'],
    ])('finds %s', async (_name, text, changed, reason) => {
      const [document = ''] = await readDocuments();
      writeFileSync(document, readFileSync(document, 'utf8').replace(text, changed));
      expect(validate(document)).toMatchObject({
        status: 1,
        stderr: expect.stringContaining(reason) as string,
      });
    });
  },
  { optional: true },
);
