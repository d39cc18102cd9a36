package dev.gpd.consent;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

/** C2SP signed-note with Ed25519 keys: https://c2sp.org/signed-note, and cosignatures: https://c2sp.org/tlog-cosignature */
record SignedNote(String text, List<Line> signatures) {
  record Line(String name, byte[] bytes) {}

  /** @param publicKey 32 bytes */
  record Key(String name, byte[] id, byte[] publicKey) {}

  static final int ED25519 = 1;
  /** The signature of a witness over a time and the note. */
  static final int COSIGNATURE = 4;

  private static final int TIME_BYTES = 8;
  private static final int KEY_ID_BYTES = 4;
  private static final int MAX_SIGNATURES = 64;
  private static final byte[] SPKI_PREFIX = HexFormat.of().parseHex("302a300506032b6570032100");

  private static boolean isForeign(int c) {
    return c == '+' || Character.isWhitespace(c) || Character.isSpaceChar(c) || Character.isISOControl(c);
  }

  private static boolean isName(String text) {
    return !text.isEmpty() && text.codePoints().noneMatch(SignedNote::isForeign);
  }

  /** name+hex(id)+base64(type || public key), or null. Base64 can contain + too, so only the first two separate the parts. */
  static Key key(String text, int type) {
    String[] parts = text == null ? new String[0] : text.strip().split("\\+", 3);
    if (parts.length != 3 || !isName(parts[0])) return null;
    byte[] typed = Bytes.ofBase64(parts[2]);
    if (typed == null || typed.length != 33 || typed[0] != type) return null;
    byte[] id = Arrays.copyOf(Bytes.sha256(Bytes.utf8(parts[0] + "\n"), typed), KEY_ID_BYTES);
    return Bytes.hex(id).equals(parts[1]) ? new Key(parts[0], id, Arrays.copyOfRange(typed, 1, 33)) : null;
  }

  private static Line line(String text) {
    String[] parts = text.split(" ", -1);
    if (parts.length != 3 || !parts[0].equals("—") || !isName(parts[1])) return null;
    byte[] bytes = Bytes.ofBase64(parts[2]);
    return bytes != null && bytes.length > KEY_ID_BYTES ? new Line(parts[1], bytes) : null;
  }

  /** Null for an invalid note. The text may have empty lines: the last one separates it from the signatures. */
  static SignedNote parse(String note) {
    int gap = note.lastIndexOf("\n\n");
    boolean hasControls = note.codePoints().anyMatch(c -> c != '\n' && Character.isISOControl(c));
    if (gap < 0 || !note.endsWith("\n") || hasControls || gap + 2 > note.length() - 1) return null;
    String[] lines = note.substring(gap + 2, note.length() - 1).split("\n", -1);
    if (lines.length > MAX_SIGNATURES) return null;
    List<Line> signatures = new ArrayList<>();
    for (String text : lines) {
      Line line = line(text);
      if (line == null) return null;
      signatures.add(line);
    }
    return new SignedNote(note.substring(0, gap + 1), signatures);
  }

  /** The signatures of all lines with the name and id of this key. */
  private List<byte[]> linesOf(Key key) {
    return signatures.stream()
        .filter(one -> one.name().equals(key.name()))
        .map(Line::bytes)
        .filter(bytes -> Arrays.equals(Arrays.copyOf(bytes, KEY_ID_BYTES), key.id()))
        .map(bytes -> Arrays.copyOfRange(bytes, KEY_ID_BYTES, bytes.length))
        .toList();
  }

  /** True if the key has signed the note and all signatures under its name and id are valid. */
  boolean isBy(Key key) {
    List<byte[]> own = linesOf(key);
    return !own.isEmpty() && own.stream().allMatch(line -> verifies(text, key, line));
  }

  /** Epoch seconds of this witness's latest cosignature; null if there is none or one is invalid. */
  Long cosignedAt(Key key) {
    Long latest = null;
    for (byte[] line : linesOf(key)) {
      if (line.length != TIME_BYTES + 64) return null;
      long time = ByteBuffer.wrap(line).getLong();
      byte[] signature = Arrays.copyOfRange(line, TIME_BYTES, line.length);
      boolean isTime = time >= 0 && time <= Json.MAX_SAFE_INTEGER;
      if (!isTime || !verifies("cosignature/v1\ntime " + time + "\n" + text, key, signature)) return null;
      latest = latest == null ? time : Math.max(latest, time);
    }
    return latest;
  }

  private static boolean verifies(String message, Key key, byte[] line) {
    byte[] der = Arrays.copyOf(SPKI_PREFIX, SPKI_PREFIX.length + 32);
    System.arraycopy(key.publicKey(), 0, der, SPKI_PREFIX.length, 32);
    try {
      PublicKey parsed = KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(der));
      Signature signature = Signature.getInstance("Ed25519");
      signature.initVerify(parsed);
      signature.update(Bytes.utf8(message));
      return signature.verify(line);
    } catch (GeneralSecurityException none) {
      return false;
    }
  }
}
