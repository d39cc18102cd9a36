import { expect, it } from 'vitest';
import { Unavailable } from '../../src/lib/errors.ts';
import { createWriteWatch } from '../../src/ops/write-faults.ts';

/** A disk that is really full: test/fault/disk-full.test.ts. */

const coded = (code: string) => new Unavailable('x', 1, { cause: Object.assign(new Error(), { code }) });

it.each([
  ['SQLITE_FULL', 'disk-full'],
  ['53100', 'disk-full'],
  ['SQLITE_READONLY', 'disk-read-only'],
  ['25006', 'disk-read-only'],
  ['SQLITE_IOERR', 'disk-failed'],
])('%s degrades until a write succeeds, and is logged as %s with a request', (code, event) => {
  const lines: object[] = [];
  const log = { error: (line: object) => lines.push(line), info: (line: object) => lines.push(line) };
  let now = 0;
  const watch = createWriteWatch(log as never, () => now);
  const counts: string[] = [];
  watch.onCount((fault) => counts.push(fault));
  watch.onUnavailable('req_0');
  expect([watch.degraded(), lines]).toEqual([[], []]);
  for (const request of ['req_1', 'req_2']) {
    watch.onWrite(coded(code));
    watch.onUnavailable(request);
  }
  expect(watch.degraded()).toEqual(['writes']);
  expect(lines).toEqual([expect.objectContaining({ event, code, requestId: 'req_1' })]);
  expect(counts).toEqual([event, event]);
  // A transaction that changed nothing proves nothing.
  watch.onWrite(null);
  expect(watch.degraded()).toEqual(['writes']);
  now = 2000;
  watch.onWrite(null);
  expect([watch.degraded(), lines[1]]).toEqual([[], { event: 'writes-recovered' }]);
  watch.onWrite(coded(code));
  now = 30_000;
  watch.onUnavailable('req_3');
  expect(lines).toHaveLength(2);
  now = 60_000;
  watch.onUnavailable('req_4');
  expect(lines[2]).toMatchObject({ event, requestId: 'req_4' });
});

it('a lock of another process is no fault of the disk', () => {
  const watch = createWriteWatch({ error: () => {}, info: () => {} }, () => 0);
  watch.onWrite(coded('SQLITE_BUSY'));
  expect(watch.degraded()).toEqual([]);
});
