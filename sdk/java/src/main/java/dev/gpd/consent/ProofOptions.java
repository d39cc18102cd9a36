package dev.gpd.consent;

import java.util.List;

/**
 * The key under which a proof must verify, and the expected entry.
 *
 * @param vkey the log's verifier key, which you got once independently of the proof, and store
 * @param seq from a decision's proof, like {@code hash}; without them, a valid proof of another entry passes
 * @param type such as {@code consent.granted}; null is not compared
 * @param witnesses verifier keys of witnesses that you trust, pinned like {@code vkey}; null requires none
 * @param minWitnesses the required number of cosignatures; null means all
 */
public record ProofOptions(
    String vkey, Long seq, String hash, String type, String purpose, List<String> witnesses, Integer minWitnesses) {
  public static ProofOptions vkey(String vkey) {
    return new ProofOptions(vkey, null, null, null, null, null, null);
  }

  /** Expects the entry that a decision names. */
  public ProofOptions of(ProofRef proof) {
    return new ProofOptions(vkey, proof.seq(), proof.hash(), type, purpose, witnesses, minWitnesses);
  }

  public ProofOptions type(String expected) {
    return new ProofOptions(vkey, seq, hash, expected, purpose, witnesses, minWitnesses);
  }

  public ProofOptions purpose(String expected) {
    return new ProofOptions(vkey, seq, hash, type, expected, witnesses, minWitnesses);
  }

  /** Requires cosignatures of at least {@code least} of these witnesses. */
  public ProofOptions witnesses(int least, List<String> keys) {
    return new ProofOptions(vkey, seq, hash, type, purpose, keys, least);
  }
}
