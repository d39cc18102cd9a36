package dev.gpd.consent;

/**
 * A decision with its reason and its proof.
 *
 * @param reason one of the known ones, or that of a later server
 * @param proof null only when nothing could be decided
 * @param policyVersion null only when nothing could be decided, or when the server told none
 * @param expiresAt an ISO time, or null for never
 * @param given who gave the grant that it rests on: person, agent, automation or unknown
 * @param error why nothing could be decided, so that it can be logged; null for a decision of the server
 */
public record Decision(
    boolean allowed, String reason, ProofRef proof, Long policyVersion, String expiresAt, String given, ConsentException error) {
  /** Of a grant that nobody is known to have given. */
  public Decision(
      boolean allowed, String reason, ProofRef proof, Long policyVersion, String expiresAt, ConsentException error) {
    this(allowed, reason, proof, policyVersion, expiresAt, "unknown", error);
  }

  static Decision unavailable(ConsentException error) {
    return new Decision(false, "unavailable", null, null, null, error);
  }
}
