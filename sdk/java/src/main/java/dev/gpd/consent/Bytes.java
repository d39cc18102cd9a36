package dev.gpd.consent;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.regex.Pattern;

/** Encodings and hashes for proofs and webhooks. */
final class Bytes {
  private static final Pattern DECIMAL = Pattern.compile("0|[1-9][0-9]{0,15}");

  private Bytes() {}

  /** Decodes only canonical padded base64: with two spellings of one value, a proof could be changed unnoticed. */
  static byte[] ofBase64(String text) {
    try {
      byte[] bytes = Base64.getDecoder().decode(text);
      return Base64.getEncoder().encodeToString(bytes).equals(text) ? bytes : null;
    } catch (IllegalArgumentException malformed) {
      return null;
    }
  }

  /** Decodes only canonical base64url without padding. */
  static byte[] ofBase64Url(String text) {
    try {
      byte[] bytes = Base64.getUrlDecoder().decode(text);
      return toBase64Url(bytes).equals(text) ? bytes : null;
    } catch (IllegalArgumentException malformed) {
      return null;
    }
  }

  static String toBase64Url(byte[] bytes) {
    return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
  }

  static byte[] hashOfBase64(String text) {
    byte[] bytes = ofBase64(text);
    return bytes != null && bytes.length == 32 ? bytes : null;
  }

  /** Parses a decimal of at most 2^53-1; -1 if it is invalid. */
  static long decimal(String text) {
    if (!DECIMAL.matcher(text).matches()) return -1;
    long value = Long.parseLong(text);
    return value <= Json.MAX_SAFE_INTEGER ? value : -1;
  }

  static byte[] sha256(byte[]... parts) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      for (byte[] part : parts) digest.update(part);
      return digest.digest();
    } catch (NoSuchAlgorithmException every) {
      throw new IllegalStateException("every JDK has SHA-256");
    }
  }

  static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }

  static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** True for valid UTF-8; other bytes would change when they are encoded again. */
  static boolean isUtf8(byte[] bytes) {
    return Arrays.equals(utf8(new String(bytes, StandardCharsets.UTF_8)), bytes);
  }
}
