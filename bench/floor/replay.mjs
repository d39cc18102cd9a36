import { createReadStream, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { makeOpener } from './open.mjs';

/** The least that a replay does for a line: read, parse, open, parse, count. */

const [file = '', kid = '', keyFile = ''] = process.argv.slice(2);
const open = makeOpener(kid, readFileSync(keyFile));
let total = 0;
for await (const line of createInterface({ input: createReadStream(file) })) {
  if (JSON.parse(open(JSON.parse(line).bundle)).v === 1) total += 1;
}
process.stdout.write(`${JSON.stringify({ total })}\n`);
