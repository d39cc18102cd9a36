import { readFileSync } from 'node:fs';

/** CPU time and memory of a process with all its threads, from /proc (Linux only; proc(5)). */

/** USER_HZ, which is 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100;
const UTIME = 11;
const STIME = 12;

/** @returns seconds of CPU of all threads, including those that have ended, in steps of 10 ms */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The numbers start after the last parenthesis: field 2, the name, can have blanks and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[UTIME]) + Number(fields[STIME])) / TICKS_PER_SECOND;
}

export interface Memory {
  readonly rssMb: number;
  readonly peakMb: number;
}

/** @returns the present and the largest resident set, in MB of 10^6 bytes, or null when the process has ended */
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
