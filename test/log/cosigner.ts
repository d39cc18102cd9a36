import {
  COSIGNATURE,
  createVerifierKey,
  formatSignature,
  formatVkey,
  openSeed,
} from '../../src/ledger/note.ts';

/**
 * Creates a witness (https://c2sp.org/tlog-cosignature,
 * `cosignature/v1`) that cosigns any checkpoint without checking it.
 */
export function createCosigner(name: string, seed: Uint8Array) {
  const pair = openSeed(seed);
  const key = createVerifierKey(name, pair.publicKey, COSIGNATURE);
  return {
    vkey: formatVkey(key),
    /** @param time in epoch seconds @returns the signature line for the text of a checkpoint */
    cosign(text: string, time: number) {
      const stamp = Buffer.alloc(8);
      stamp.writeBigUInt64BE(BigInt(time));
      const signature = Buffer.concat([stamp, pair.sign(`cosignature/v1\ntime ${time}\n${text}`)]);
      return formatSignature({ name, id: key.id, signature });
    },
  };
}
