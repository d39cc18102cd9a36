package dev.gpd.consent;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** Reads an object of the wire, and throws at the first invalid field. */
record Fields(Map<String, Object> of) {
  /** Thrown for a malformed answer; it never leaves this package. */
  static final class Malformed extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Malformed() {
      super(null, null, false, false);
    }
  }

  private static final Pattern HASH = Pattern.compile("[0-9a-f]{64}");

  static Fields ofValue(Object value) {
    if (!(value instanceof Map<?, ?>)) throw new Malformed();
    @SuppressWarnings("unchecked")
    Map<String, Object> fields = (Map<String, Object>) value;
    return new Fields(fields);
  }

  private <T> T required(String name, Class<T> type) {
    Object value = of.get(name);
    if (!type.isInstance(value)) throw new Malformed();
    return type.cast(value);
  }

  private <T> T optional(String name, Class<T> type) {
    return of.get(name) == null ? null : required(name, type);
  }

  String text(String name) {
    return required(name, String.class);
  }

  /** Reads a field that may be null or absent. */
  String optionalText(String name) {
    return optional(name, String.class);
  }

  boolean bool(String name) {
    return required(name, Boolean.class);
  }

  long integer(String name) {
    return required(name, Long.class);
  }

  Long optionalInteger(String name) {
    return optional(name, Long.class);
  }

  Double optionalNumber(String name) {
    Number value = optional(name, Number.class);
    return value == null ? null : value.doubleValue();
  }

  List<?> list(String name) {
    return required(name, List.class);
  }

  List<String> texts(String name) {
    List<String> texts = new ArrayList<>();
    for (Object item : list(name)) {
      if (!(item instanceof String text)) throw new Malformed();
      texts.add(text);
    }
    return List.copyOf(texts);
  }

  Fields object(String name) {
    return ofValue(of.get(name));
  }

  long seq() {
    long seq = integer("seq");
    if (seq < 0) throw new Malformed();
    return seq;
  }

  String hash() {
    String hash = text("hash");
    if (!HASH.matcher(hash).matches()) throw new Malformed();
    return hash;
  }

  Decision decision() {
    Fields proof = object("proof");
    return new Decision(
        bool("allowed"),
        text("reason"),
        new ProofRef(proof.seq(), proof.hash()),
        optionalInteger("policyVersion"),
        optionalText("expiresAt"),
        of.containsKey("given") ? text("given") : "unknown",
        optionalText("subject"),
        null);
  }
}
