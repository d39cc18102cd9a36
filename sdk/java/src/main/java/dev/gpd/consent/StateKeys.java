package dev.gpd.consent;

import java.math.BigInteger;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;

/** The keys that sign states (SPEC.md section 10). They are fetched when the first well-formed cookie arrives. */
final class StateKeys {
  private static final Duration TTL = Duration.ofMinutes(5);
  /** The pause between two fetches, because anybody can send a cookie with an unknown key id. */
  private static final Duration REFETCH = Duration.ofMinutes(1);
  /** The pause after a fetch that failed while no key is known. */
  private static final Duration RETRY = Duration.ofSeconds(5);

  /** The keys of {@code GET /v1/consent/state-keys} for ES256, and the tenant of the API key. */
  record KeySet(String tenant, Map<String, PublicKey> byId) {}

  private KeySet known;
  private Instant fetchedAt;
  private Instant triedAt;
  private ConsentException failure;

  /** Keys of other kinds are passed over. */
  static KeySet read(Fields answer) {
    Map<String, PublicKey> byId = new HashMap<>();
    for (Object item : answer.list("keys")) {
      if (!(item instanceof Map<?, ?> jwk) || !(jwk.get("kid") instanceof String id)) continue;
      PublicKey key = isForStates(jwk) ? importKey(jwk.get("x"), jwk.get("y")) : null;
      if (key != null) byId.put(id, key);
    }
    return new KeySet(answer.text("tenant"), byId);
  }

  private static boolean isForStates(Map<?, ?> jwk) {
    return "EC".equals(jwk.get("kty"))
        && "P-256".equals(jwk.get("crv"))
        && (!jwk.containsKey("alg") || "ES256".equals(jwk.get("alg")))
        && (!jwk.containsKey("use") || "sig".equals(jwk.get("use")));
  }

  private static PublicKey importKey(Object x, Object y) {
    byte[] first = x instanceof String text ? Bytes.ofBase64Url(text) : null;
    byte[] second = y instanceof String text ? Bytes.ofBase64Url(text) : null;
    if (first == null || second == null || first.length != 32 || second.length != 32) return null;
    try {
      AlgorithmParameters parameters = AlgorithmParameters.getInstance("EC");
      parameters.init(new ECGenParameterSpec("secp256r1"));
      ECPoint point = new ECPoint(new BigInteger(1, first), new BigInteger(1, second));
      ECParameterSpec curve = parameters.getParameterSpec(ECParameterSpec.class);
      return KeyFactory.getInstance("EC").generatePublic(new ECPublicKeySpec(point, curve));
    } catch (GeneralSecurityException noKey) {
      return null;
    }
  }

  /** True if that much time has passed. A clock that was set back does not stop it. */
  private static boolean hasPassed(Instant since, Duration pause, Instant now) {
    return since == null || now.isBefore(since) || !now.isBefore(since.plus(pause));
  }

  /** True if the keys have to be fetched now, by the caller. */
  synchronized boolean begin(String keyId, Instant now) {
    if (known == null) return hasPassed(triedAt, RETRY, now);
    boolean isWanted = !known.byId().containsKey(keyId) || hasPassed(fetchedAt, TTL, now);
    if (!isWanted || !hasPassed(triedAt, REFETCH, now)) return false;
    // Set before the call, so that other requests go on with the known keys meanwhile.
    triedAt = now;
    return true;
  }

  /** Known keys stay in use when a fetch failed. */
  synchronized void end(KeySet keys, ConsentException error, Instant now) {
    if (error == null) {
      known = keys;
      fetchedAt = now;
    }
    failure = error;
    triedAt = now;
  }

  /** @throws ConsentException when the key could not be fetched */
  boolean verify(SignedState state) {
    KeySet keys;
    synchronized (this) {
      keys = known;
      boolean isKnown = keys != null && keys.byId().containsKey(state.keyId());
      if (!isKnown && failure != null) throw failure;
      if (!isKnown) return false;
    }
    return state.tenant().equals(keys.tenant()) && verifies(keys.byId().get(state.keyId()), state);
  }

  private static boolean verifies(PublicKey key, SignedState state) {
    try {
      Signature signature = Signature.getInstance("SHA256withECDSAinP1363Format");
      signature.initVerify(key);
      signature.update(state.message());
      return signature.verify(state.signature());
    } catch (GeneralSecurityException notSigned) {
      return false;
    }
  }
}
