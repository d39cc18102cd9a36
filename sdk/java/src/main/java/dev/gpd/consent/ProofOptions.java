package dev.gpd.consent;

/**
 * Under which key a proof has to verify, and of what.
 *
 * @param vkey the log's verifier key, got once by another way than the proof, and kept
 * @param seq of a decision's proof, as is {@code hash}; without them a true proof of another entry passes
 * @param type such as {@code consent.granted}; null is not asked for
 */
public record ProofOptions(String vkey, Long seq, String hash, String type, String purpose) {
  public static ProofOptions vkey(String vkey) {
    return new ProofOptions(vkey, null, null, null, null);
  }

  /** The entry that a decision names. */
  public ProofOptions of(ProofRef proof) {
    return new ProofOptions(vkey, proof.seq(), proof.hash(), type, purpose);
  }

  public ProofOptions type(String expected) {
    return new ProofOptions(vkey, seq, hash, expected, purpose);
  }

  public ProofOptions purpose(String expected) {
    return new ProofOptions(vkey, seq, hash, type, expected);
  }
}
