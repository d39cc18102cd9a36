package dev.gpd.consent;

import java.util.List;

/**
 * Under which key a proof has to verify, and of what.
 *
 * @param vkey the log's verifier key, got once by another way than the proof, and kept
 * @param seq of a decision's proof, as is {@code hash}; without them a true proof of another entry passes
 * @param type such as {@code consent.granted}; null is not asked for
 * @param witnesses verifier keys of witnesses that you trust, pinned like {@code vkey}; null asks for none
 * @param minWitnesses how many of them have to have cosigned; null is all
 */
public record ProofOptions(
    String vkey, Long seq, String hash, String type, String purpose, List<String> witnesses, Integer minWitnesses) {
  public static ProofOptions vkey(String vkey) {
    return new ProofOptions(vkey, null, null, null, null, null, null);
  }

  /** The entry that a decision names. */
  public ProofOptions of(ProofRef proof) {
    return new ProofOptions(vkey, proof.seq(), proof.hash(), type, purpose, witnesses, minWitnesses);
  }

  public ProofOptions type(String expected) {
    return new ProofOptions(vkey, seq, hash, expected, purpose, witnesses, minWitnesses);
  }

  public ProofOptions purpose(String expected) {
    return new ProofOptions(vkey, seq, hash, type, expected, witnesses, minWitnesses);
  }

  /** So many of these have to have cosigned. */
  public ProofOptions witnesses(int least, List<String> keys) {
    return new ProofOptions(vkey, seq, hash, type, purpose, keys, least);
  }
}
