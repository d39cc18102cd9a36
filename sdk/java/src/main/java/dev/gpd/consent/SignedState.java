package dev.gpd.consent;

import java.math.BigInteger;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * The content of the cookie {@code gpd_consent}: a compact JWS of gpd about a visitor's choices (SPEC.md section 10). {@link StateKeys}
 * verifies the signature.
 *
 * @param text the whole JWS
 * @param signature 64 bytes: r and s
 * @param subject gpd's reference of the person, not the principal id
 */
record SignedState(
    String text,
    String keyId,
    byte[] message,
    byte[] signature,
    String tenant,
    String subject,
    Instant issuedAt,
    Instant expiresAt,
    List<String> purposes,
    long seq) {
  static final String COOKIE = "gpd_consent";
  private static final int MAX_LENGTH = 4096;
  private static final long MAX_AGE_SECONDS = 300;
  /** The tolerated difference between the clocks of gpd and this machine. */
  private static final long MAX_SKEW_SECONDS = 60;
  /** 400 days, as the banner has it: the cookie of a visitor who comes back after a month is renewed. */
  private static final long COOKIE_SECONDS = 34_560_000;
  /** 9999-12-31T23:59:59Z, after which not every language can write the time. */
  private static final long MAX_SECONDS = 253_402_300_799L;
  /** The order n of P-256: both halves of a signature are 1 to n-1. Java 15 to 18 once accepted zero. */
  private static final BigInteger ORDER =
      new BigInteger("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", 16);
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.000'Z'").withZone(ZoneOffset.UTC);

  /** Null unless the header has exactly one such cookie: nobody can say which of two is the newer one. */
  static String ofCookie(String header) {
    if (header == null) return null;
    String prefix = COOKIE + "=";
    List<String> pairs = Arrays.stream(header.split(";")).map(String::strip).filter(one -> one.startsWith(prefix)).toList();
    return pairs.size() == 1 ? pairs.get(0).substring(prefix.length()) : null;
  }

  /** Null for a malformed state or another algorithm. */
  static SignedState parse(String text) {
    if (text == null || text.length() > MAX_LENGTH) return null;
    String[] parts = text.split("\\.", -1);
    if (parts.length != 3) return null;
    Map<String, Object> header = Json.object(Bytes.ofBase64Url(parts[0]));
    Map<String, Object> claims = Json.object(Bytes.ofBase64Url(parts[1]));
    byte[] signature = Bytes.ofBase64Url(parts[2]);
    boolean isForm = header != null && claims != null && isSignature(signature) && !header.containsKey("crit");
    if (!isForm || !"ES256".equals(header.get("alg")) || !"JWT".equals(header.get("typ"))) return null;
    try {
      Fields of = new Fields(claims);
      return new SignedState(
          text,
          new Fields(header).text("kid"),
          Bytes.utf8(parts[0] + "." + parts[1]),
          signature,
          of.text("kid"),
          of.text("sub"),
          seconds(of, "iat"),
          seconds(of, "exp"),
          of.texts("p"),
          of.seq());
    } catch (Fields.Malformed malformed) {
      return null;
    }
  }

  private static Instant seconds(Fields claims, String name) {
    long value = claims.integer(name);
    if (value < 0 || value > MAX_SECONDS) throw new Fields.Malformed();
    return Instant.ofEpochSecond(value);
  }

  private static boolean isSignature(byte[] bytes) {
    return bytes != null
        && bytes.length == 64
        && isHalf(new BigInteger(1, bytes, 0, 32))
        && isHalf(new BigInteger(1, bytes, 32, 32));
  }

  private static boolean isHalf(BigInteger half) {
    return half.signum() > 0 && half.compareTo(ORDER) < 0;
  }

  String at() {
    return TIME.format(issuedAt);
  }

  /** True for a state that cannot be gpd's, because it was signed in the future. */
  boolean isEarly(Instant now) {
    return issuedAt.isAfter(now.plusSeconds(MAX_SKEW_SECONDS));
  }

  /** A state counts for five minutes, whatever it says itself. */
  boolean isFresh(Instant now) {
    return now.isBefore(expiresAt) && now.isBefore(issuedAt.plusSeconds(MAX_AGE_SECONDS));
  }

  /**
   * Makes a cookie that scripts can read, because the banner has to end it the moment that somebody refuses.
   *
   * @param state null to remove the cookie
   */
  static String setCookie(String state, String domain) {
    String value = state == null ? "" : state;
    long age = state == null ? 0 : COOKIE_SECONDS;
    String scope = domain == null ? "" : "; Domain=" + domain;
    return COOKIE + "=" + value + "; Path=/; Max-Age=" + age + "; SameSite=Lax; Secure" + scope;
  }
}
