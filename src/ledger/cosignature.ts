import { formatSignature, isSigned, linesOf, type SignedNote } from './note.ts';
import type { VerifierKey } from './vkey.ts';

/** C2SP tlog-cosignature, `cosignature/v1`: as of a time, this checkpoint was the longest of its log that the witness knew. */

const TIME_BYTES = 8;

const signedText = (text: string, time: number): string => `cosignature/v1\ntime ${time}\n${text}`;

/** The last one of this witness, at a time in epoch seconds; null unless it cosigned, and each line that claims to be of it is right. */
export function cosignatureOf(note: SignedNote, key: VerifierKey) {
  const all = linesOf(note, key).map((one) => {
    const { signature } = one;
    const time = signature.length > TIME_BYTES ? Number(signature.readBigUInt64BE()) : Number.NaN;
    const holds =
      Number.isSafeInteger(time) &&
      isSigned(signedText(note.text, time), signature.subarray(TIME_BYTES), key);
    return holds ? { time, line: formatSignature(one) } : null;
  });
  const good = all.filter((one) => one !== null).sort((a, b) => b.time - a.time);
  return good.length === all.length ? (good[0] ?? null) : null;
}
