import {
  COSIGNATURE,
  createVerifierKey,
  formatSignature,
  formatVkey,
  openSeed,
} from '../../src/ledger/note.ts';

/** A witness's key (C2SP tlog-cosignature, `cosignature/v1`). It cosigns whatever it is given. */
export function createCosigner(name: string, seed: Uint8Array) {
  const pair = openSeed(seed);
  const key = createVerifierKey(name, pair.publicKey, COSIGNATURE);
  return {
    vkey: formatVkey(key),
    /** The signature line over the text of a checkpoint, at a time in epoch seconds. */
    cosign(text: string, time: number) {
      const stamp = Buffer.alloc(8);
      stamp.writeBigUInt64BE(BigInt(time));
      const signature = Buffer.concat([stamp, pair.sign(`cosignature/v1\ntime ${time}\n${text}`)]);
      return formatSignature({ name, id: key.id, signature });
    },
  };
}
