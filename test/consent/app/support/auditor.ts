import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { tempDir } from '../../../support/command.ts';

/** The verifier that every package holds: Python's standard library, and openssl. It knows nothing of gpd. */

const VERIFY = fileURLToPath(new URL('../../../../docs/verify.py', import.meta.url));

/** One start of Python for many proofs; a line of JSON for each. */
const MANY = `
import sys, runpy, json, io, contextlib
verifier, vkey, *proofs = sys.argv[1:]
module = runpy.run_path(verifier)
read = module['read_text']
for proof in proofs:
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            module['verify_proof'](read(proof), read(vkey))
        print('#' + json.dumps(out.getvalue()))
    except Exception as error:
        print('#' + json.dumps('REFUSED ' + str(error)))
`;

/** Null when both tools are there; else why not, and the remedy. */
export function missingAuditor(): string | null {
  try {
    execFileSync('python3', ['--version']);
    execFileSync('openssl', ['version']);
    return null;
  } catch {
    return 'python3 or openssl is not installed (apt-get install python3 openssl)';
  }
}

/** What the auditor says of each proof: its output, or `REFUSED …`. */
export async function audit(proofs: readonly string[], vkey: string): Promise<string[]> {
  const directory = tempDir('audit');
  const vkeyFile = join(directory, 'vkey');
  writeFileSync(vkeyFile, vkey);
  const files = proofs.map((proof, i) => {
    const file = join(directory, `${i}.tlog-proof`);
    writeFileSync(file, proof);
    return file;
  });
  const run = promisify(execFile);
  const { stdout } = await run('python3', ['-c', MANY, VERIFY, vkeyFile, ...files], { maxBuffer: 2 ** 26 });
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('#'))
    .map((line) => JSON.parse(line.slice(1)) as string);
}
