import { formatVkey } from '../ledger/note.ts';
import type { WitnessPolicy } from './checkpoint-service.ts';

/**
 * The policy of a log as verifiers of other makers read it (C2SP tlog-policy): the key of the log, the
 * witnesses, and how many of them have to cosign.
 */

/** @param vkey of the log @returns the file, with a final newline */
export function formatPolicy(vkey: string, { witnesses, min }: WitnessPolicy): string {
  // A key's name need not be unique, and a name in the file must be.
  const lines = witnesses.map(({ key, url }, i) => `witness w${i + 1} ${formatVkey(key)} ${url}`);
  const names = witnesses.map((_, i) => `w${i + 1}`);
  const quorum =
    min === 0 ? ['quorum none'] : [`group witnesses ${min} ${names.join(' ')}`, 'quorum witnesses'];
  return [`log ${vkey}`, ...lines, ...quorum, ''].join('\n');
}
