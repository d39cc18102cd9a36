package dev.gpd.consent;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.time.Instant;
import java.util.HashMap;
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

  StateKeys.KeySet keys() {
    return new StateKeys.KeySet(TENANT, Map.of(KEY_ID, pair.getPublic()));
  }

  private static String encode(JsonObject value) {
    return Bytes.toBase64Url(Bytes.utf8(value.toString()));
  }

  String sign(String principalId, FakeLog.VisitorView view, Instant now) {
    String subject = Bytes.hex(Bytes.sha256(Bytes.utf8("fake subject " + principalId)));
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
