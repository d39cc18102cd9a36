import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { ZipFile } from 'yazl';
import { type Bytes, meter } from '../lib/pass-bytes.ts';

/** Writes a ZIP as a stream, for what gpd hands to people. */

interface ZipOptions {
  readonly mtime: Date;
  /** True: the time is in the form of DOS alone, which has no time zone. */
  readonly forceDosTimestamp?: boolean;
}

/** Midnight of 1980-01-01, before which a ZIP has no time, wherever the process runs. */
export const FIXED_TIME: ZipOptions = { mtime: new Date(1980, 0, 1), forceDosTimestamp: true };

/** Files go in one after the other, so that each is hashed before the manifest is written. */
export function createZip({ mtime, forceDosTimestamp = false }: ZipOptions, signal: AbortSignal) {
  const zip = new ZipFile();
  // A reader of the ZIP waits for the next bytes until somebody ends the stream.
  signal.addEventListener('abort', () => (zip.outputStream as Readable).destroy(), { once: true });
  const digests: { name: string; size: number; sha256: string }[] = [];
  return {
    stream: Readable.from(zip.outputStream, { objectMode: false }),
    digests,
    end: () => zip.end(),
    async add(name: string, content: Bytes, { compress = true } = {}): Promise<void> {
      const { pass, result } = meter();
      const source = Readable.from(pass(content), { objectMode: false, signal });
      const finishedReading = finished(source, { signal });
      // yazl keeps what opens a stream until the file ends, and with the stream the text of the part.
      let waiting: Readable | null = source;
      const options = { mtime, forceDosTimestamp, mode: 0o100600, compress };
      zip.addReadStreamLazy(name, options, (open) => {
        if (waiting) open(null, waiting);
        waiting = null;
      });
      await finishedReading;
      digests.push({ name, ...result() });
    },
  };
}
