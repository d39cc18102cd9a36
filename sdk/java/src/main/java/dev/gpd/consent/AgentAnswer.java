package dev.gpd.consent;

/**
 * Who signed a request.
 *
 * @param status {@code verified}, {@code invalid}, {@code unverified} or {@code none}
 * @param agent the identity, a URL; null unless the status is {@code verified}
 * @param intent {@code browse} or {@code pay}, where the tag says so; or null
 * @param expires end of the signature, in seconds since the epoch; or null
 * @param reason a code of the list in gpd's documentation, {@code unavailable}, or null; do not tell the agent
 * @param error the reason why gpd could not be asked; null for an answer of gpd
 */
public record AgentAnswer(
    String status, String agent, String keyid, String tag, String intent, Double expires, String reason, ConsentException error) {
  static final AgentAnswer UNSIGNED = new AgentAnswer("none", null, null, null, null, null, null, null);

  /** An agent for your tests, whose signature holds. */
  public static AgentAnswer verified(String agent) {
    return new AgentAnswer("verified", agent, null, null, null, null, null, null);
  }

  /** Nobody is verified if gpd cannot be asked. */
  static AgentAnswer unasked(ConsentException error) {
    return new AgentAnswer("unverified", null, null, null, null, null, "unavailable", error);
  }

  static AgentAnswer read(Fields fields) {
    return new AgentAnswer(
        fields.text("status"),
        fields.optionalText("agent"),
        fields.optionalText("keyid"),
        fields.optionalText("tag"),
        fields.optionalText("intent"),
        fields.optionalNumber("expires"),
        fields.optionalText("reason"),
        null);
  }
}
