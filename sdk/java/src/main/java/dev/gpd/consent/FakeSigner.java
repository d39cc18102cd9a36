package dev.gpd.consent;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECPoint;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Signs the states of a fake with a key that only this fake has. */
final class FakeSigner {
  private static final String TENANT = "fake";
  private static final String KEY_ID = "fake-key";

  private final KeyPair pair;

  /** Principals by their reference. */
  private final Map<String, String> principals = new HashMap<>();

  FakeSigner() {
    try {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
      generator.initialize(new ECGenParameterSpec("secp256r1"));
      pair = generator.generateKeyPair();
    } catch (GeneralSecurityException every) {
      throw new IllegalStateException("every JDK has P-256");
    }
  }

  String principalOf(SignedState state) {
    return principals.get(state.subject());
  }

  Map<String, Object> jwks() {
    ECPoint point = ((ECPublicKey) pair.getPublic()).getW();
    Map<String, Object> key = new HashMap<>(Map.of("kid", KEY_ID, "kty", "EC", "crv", "P-256", "alg", "ES256", "use", "sig"));
    key.put("x", coordinate(point.getAffineX()));
    key.put("y", coordinate(point.getAffineY()));
    return Map.of("tenant", TENANT, "keys", List.of(key));
  }

  private static String coordinate(BigInteger number) {
    byte[] bytes = number.toByteArray();
    byte[] padded = new byte[32];
    // The sign may add a byte, and a small number lacks some.
    int length = Math.min(bytes.length, padded.length);
    System.arraycopy(bytes, bytes.length - length, padded, padded.length - length, length);
    return Bytes.toBase64Url(padded);
  }

  static String subjectOf(String principalId) {
    return Bytes.hex(Bytes.sha256(Bytes.utf8("fake subject " + principalId)));
  }

  private static String encode(JsonObject value) {
    return Bytes.toBase64Url(Bytes.utf8(value.toString()));
  }

  String sign(String principalId, FakeLog.VisitorView view, Instant now) {
    String subject = subjectOf(principalId);
    principals.put(subject, principalId);
    JsonObject header = new JsonObject();
    header.addProperty("alg", "ES256");
    header.addProperty("kid", KEY_ID);
    header.addProperty("typ", "JWT");
    JsonObject claims = new JsonObject();
    claims.addProperty("iss", "https://fake.example");
    claims.addProperty("kid", TENANT);
    claims.addProperty("sub", subject);
    claims.addProperty("iat", now.getEpochSecond());
    claims.addProperty("exp", now.getEpochSecond() + 300);
    JsonArray purposes = new JsonArray();
    view.purposes().forEach(purposes::add);
    claims.add("p", purposes);
    claims.addProperty("seq", view.seq());
    String message = encode(header) + "." + encode(claims);
    return message + "." + Bytes.toBase64Url(signatureOf(message));
  }

  private byte[] signatureOf(String message) {
    try {
      Signature signature = Signature.getInstance("SHA256withECDSAinP1363Format");
      signature.initSign(pair.getPrivate());
      signature.update(Bytes.utf8(message));
      return signature.sign();
    } catch (GeneralSecurityException every) {
      throw new IllegalStateException("every JDK signs with P-256");
    }
  }
}
