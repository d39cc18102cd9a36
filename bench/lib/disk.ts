import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';

/**
 * What was written before (the sealed bundles, hundreds of megabytes) goes to the disk now: the kernel would send it half a
 * minute later, in the middle of what is timed.
 */
export function settleDisk(): void {
  execFileSync('sync', ['-f', tmpdir()]);
}
