package dev.gpd.consent;

import java.time.Instant;

/**
 * A decision with its reason and its proof.
 *
 * @param reason a known reason, or one of a newer server
 * @param proof null only if the check could not be decided
 * @param policyVersion null only if the check could not be decided, or the server sent none
 * @param expiresAt an ISO time, or null for never
 * @param given origin of the grant behind the decision: person, agent, automation or unknown
 * @param subject the reference of the person that the events subject.erased and subject.linked carry, or null
 * @param error the reason why the check could not be decided, for logs; null for a decision of the server
 */
public record Decision(
    boolean allowed, String reason, ProofRef proof, Long policyVersion, String expiresAt, String given, String subject, ConsentException error) {
  /** A decision whose grant has an unknown origin. */
  public Decision(
      boolean allowed, String reason, ProofRef proof, Long policyVersion, String expiresAt, ConsentException error) {
    this(allowed, reason, proof, policyVersion, expiresAt, "unknown", null, error);
  }

  /** {@code expiresAt} as a time, or null for never. */
  public Instant expires() {
    return expiresAt == null ? null : Instant.parse(expiresAt);
  }

  static Decision unavailable(ConsentException error) {
    return new Decision(false, "unavailable", null, null, null, error);
  }
}
