import { readFileSync } from 'node:fs';

/** Linux only: what the kernel counts for a process and all its threads (proc(5)). */

/** USER_HZ, which is 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100;
const UTIME = 11;
const STIME = 12;

/** Seconds of CPU of all threads, also those that ended; steps of 10 ms. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name, field 2, may hold blanks and parentheses: what is counted starts after the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[UTIME]) + Number(fields[STIME])) / TICKS_PER_SECOND;
}

export interface Memory {
  readonly rssMb: number;
  readonly peakMb: number;
}

/** Resident set now and at its highest, in MB of 10^6 bytes; null when the process is gone. */
export function memory(pid: number): Memory | null {
  let status: string;
  try {
    status = readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return null;
  }
  const mb = (name: string): number | null => {
    const kib = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
    return kib === undefined ? null : (Number(kib) * 1024) / 1e6;
  };
  const [rssMb, peakMb] = [mb('VmRSS'), mb('VmHWM')];
  return rssMb === null || peakMb === null ? null : { rssMb, peakMb };
}
