import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { createZip, FIXED_TIME } from '../../src/rights/zip-files.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** @returns a reference that does not keep the content of the part */
async function addPart(zip: ReturnType<typeof createZip>, name: string): Promise<WeakRef<object>> {
  const content = [`the text of ${name}`];
  await zip.add(name, content);
  return new WeakRef(content);
}

it('keeps no part that was written: a file of a thousand parts takes the memory of one', async () => {
  const zip = createZip(FIXED_TIME, new AbortController().signal);
  zip.stream.resume();
  const parts: WeakRef<object>[] = [];
  for (let i = 0; i < 20; i += 1) parts.push(await addPart(zip, `part-${i}`));
  // A WeakRef keeps what it refers to until its task ends.
  await new Promise(setImmediate);
  collectGarbage();
  // The stream that was read last may still be on its way out.
  expect(parts.slice(0, -2).filter((part) => part.deref() !== undefined)).toEqual([]);
  zip.end();
  expect(zip.digests).toHaveLength(20);
});
