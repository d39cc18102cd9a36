package dev.gpd.consent;

import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Verifies deliveries of gpd, which are signed as in Standard Webhooks (SPEC.md section 7). */
public final class Webhooks {
  private static final String NAME = "Webhooks.verify";
  private static final String PREFIX = "whsec_";
  private static final Pattern TIME = Pattern.compile("[0-9]{1,15}");

  private Webhooks() {}

  private static ConsentException refusal(String code) {
    return ConsentException.of(NAME, ErrorKind.PROOF, code);
  }

  private static ConsentException misconfigured(String hint) {
    return ConsentException.hinted(NAME, ErrorKind.CONFIG, hint);
  }

  private static List<byte[]> keys(List<String> secrets) {
    List<byte[]> keys = new ArrayList<>();
    for (String secret : secrets) {
      byte[] key = secret != null && secret.startsWith(PREFIX) ? Bytes.ofBase64(secret.substring(PREFIX.length())) : null;
      if (key != null && key.length >= 24 && key.length <= 64) keys.add(key);
    }
    if (!keys.isEmpty() && keys.size() == secrets.size()) return keys;
    throw misconfigured("secrets are whsec_ and base64 of 24 to 64 bytes");
  }

  /** The header must occur exactly once and must not be empty. */
  private static String once(Map<String, List<String>> headers, String name) {
    List<String> values =
        headers.entrySet().stream()
            .filter(header -> name.equalsIgnoreCase(header.getKey()))
            .flatMap(header -> header.getValue().stream())
            .toList();
    if (values.size() != 1 || values.get(0).isEmpty()) throw refusal("missing-header");
    return values.get(0);
  }

  private static byte[] mac(byte[] key, byte[] head, byte[] body) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(key, "HmacSHA256"));
      mac.update(head);
      return mac.doFinal(body);
    } catch (GeneralSecurityException every) {
      throw new IllegalStateException("every JDK has HmacSHA256");
    }
  }

  private static boolean isSigned(List<byte[]> keys, byte[] head, byte[] body, String signatures) {
    List<byte[]> macs = keys.stream().map(key -> mac(key, head, body)).toList();
    boolean isOne = false;
    for (String item : signatures.split(" ")) {
      byte[] received = item.startsWith("v1,") ? Bytes.ofBase64(item.substring("v1,".length())) : null;
      if (received == null) continue;
      for (byte[] expected : macs) isOne |= MessageDigest.isEqual(expected, received);
    }
    return isOne;
  }

  private static WebhookEvent event(String id, byte[] body) {
    Map<String, Object> object = Json.object(body);
    if (object == null) throw refusal("malformed-event");
    Fields fields = new Fields(object);
    try {
      return new WebhookEvent(
          id, fields.text("type"), fields.text("timestamp"), fields.integer("seq"), fields.object("data").of());
    } catch (Fields.Malformed malformed) {
      throw refusal("malformed-event");
    }
  }

  /**
   * @param body the raw bytes of the request, unparsed
   * @throws ConsentException proof, whose code names the failed check; config for a malformed secret or tolerance
   */
  public static WebhookEvent verify(byte[] body, Map<String, List<String>> headers, WebhookOptions options) {
    if (body == null || headers == null || options == null) throw misconfigured("body, headers and options are not null");
    List<byte[]> keys = keys(options.secrets);
    if (options.tolerance == null || options.tolerance.isNegative()) {
      throw misconfigured("tolerance is a time, zero or more");
    }
    String id = once(headers, "webhook-id");
    String timestamp = once(headers, "webhook-timestamp");
    String signatures = once(headers, "webhook-signature");
    if (!TIME.matcher(timestamp).matches()) throw refusal("malformed-header");
    if (!isSigned(keys, Bytes.utf8(id + "." + timestamp + "."), body, signatures)) throw refusal("bad-signature");
    Instant now = options.now == null ? Instant.now() : options.now;
    long off = Math.abs(Long.parseLong(timestamp) - now.getEpochSecond());
    if (off > options.tolerance.toSeconds()) throw refusal("stale");
    return event(id, body);
  }

  /** Returns the headers of a delivery as gpd signs it, for tests of a receiver. */
  public static Map<String, String> sign(byte[] body, String secret, String id, Instant now) {
    byte[] key = keys(Collections.singletonList(secret)).get(0);
    String timestamp = String.valueOf(now.getEpochSecond());
    String signature = Base64.getEncoder().encodeToString(mac(key, Bytes.utf8(id + "." + timestamp + "."), body));
    return Map.of("webhook-id", id, "webhook-timestamp", timestamp, "webhook-signature", "v1," + signature);
  }
}
