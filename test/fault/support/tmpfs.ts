import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { tempDir } from '../../support/command.ts';

/** A disk of a few megabytes, which can really be filled. */

export interface SmallDisk {
  readonly path: string;
  /** Fills it to the last byte. */
  fill(): number;
  /** Gives back what `fill` took. */
  free(): void;
  unmount(): void;
}

export function mountSmallDisk(megabytes: number): SmallDisk {
  const path = tempDir('small-disk');
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path], {
    encoding: 'utf8',
  });
  if (mounted.status !== 0) throw new Error(mounted.error?.message ?? mounted.stderr);
  const unmount = (): void => void spawnSync('umount', ['-l', path]);
  process.once('exit', unmount);
  const filler = join(path, 'filler');
  return {
    path,
    fill() {
      const file = openSync(filler, 'a');
      let filled = 0;
      // A page is what tmpfs gives; the last ones go one by one.
      for (const size of [1024 * 1024, 4096]) {
        const chunk = Buffer.alloc(size, 7);
        try {
          for (;;) filled += writeSync(file, chunk);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
      closeSync(file);
      return filled;
    },
    free: () => rmSync(filler, { force: true }),
    unmount() {
      process.off('exit', unmount);
      unmount();
    },
  };
}

/** Null when a file system can be mounted here; else why not. */
export function refusedMount(): string | null {
  try {
    mountSmallDisk(1).unmount();
    return null;
  } catch (error) {
    return `a tmpfs cannot be mounted here (root alone may): ${String(error).trim()}`;
  }
}
