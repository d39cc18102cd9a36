package dev.gpd.consent;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;

/** Verifies proofs of entries offline: c2sp.org/tlog-proof@v1 with the entry (SPEC.md section 6). */
public final class Proofs {
  private static final int MAX_PATH = 63;
  private static final Pattern HEX = Pattern.compile("[0-9a-f]{64}");

  private Proofs() {}

  private record Parsed(byte[] entry, long index, List<byte[]> path, String checkpoint) {}

  private record Checkpoint(String origin, long size, byte[] root) {}

  private static ConsentException refusal(String code) {
    return ConsentException.of("Proofs.verify", ErrorKind.PROOF, code);
  }

  private static <T> T required(T value, String code) {
    if (value == null) throw refusal(code);
    return value;
  }

  private static void require(boolean holds, String code) {
    if (!holds) throw refusal(code);
  }

  private static Parsed parse(String text) {
    int gap = text == null ? -1 : text.indexOf("\n\n");
    if (gap < 0) return null;
    String[] lines = text.substring(0, gap).split("\n", -1);
    if (lines.length < 3 || lines.length > 3 + MAX_PATH || !lines[0].equals("c2sp.org/tlog-proof@v1")) return null;
    if (!lines[1].startsWith("extra ") || !lines[2].startsWith("index ")) return null;
    byte[] entry = Bytes.ofBase64(lines[1].substring("extra ".length()));
    long index = Bytes.decimal(lines[2].substring("index ".length()));
    List<byte[]> path = new ArrayList<>();
    for (String line : Arrays.asList(lines).subList(3, lines.length)) {
      byte[] hash = Bytes.hashOfBase64(line);
      if (hash == null) return null;
      path.add(hash);
    }
    return entry == null || index < 0 ? null : new Parsed(entry, index, path, text.substring(gap + 2));
  }

  private static Checkpoint checkpoint(String text) {
    String[] lines = text.split("\n", -1);
    if (lines.length != 4 || lines[0].isEmpty() || !lines[3].isEmpty()) return null;
    long size = Bytes.decimal(lines[1]);
    byte[] root = Bytes.hashOfBase64(lines[2]);
    return size < 0 || root == null ? null : new Checkpoint(lines[0], size, root);
  }

  private static Map<String, Object> entry(byte[] bytes) {
    Map<String, Object> entry = Bytes.isUtf8(bytes) ? Json.object(bytes) : null;
    boolean isOne = entry != null && Long.valueOf(1).equals(entry.get("v")) && entry.get("type") instanceof String;
    return isOne ? entry : null;
  }

  private static boolean isExpected(ProvenEntry found, ProofOptions options) {
    return (options.seq() == null || options.seq() == found.seq())
        && (options.hash() == null || options.hash().equals(found.hash()))
        && (options.type() == null || options.type().equals(found.entry().get("type")))
        && (options.purpose() == null || options.purpose().equals(found.entry().get("purpose")));
  }

  /** Refuses a key that appears twice, because it would count twice, and the log's own key, which is no witness. */
  private static List<SignedNote.Key> witnessKeys(SignedNote.Key logKey, List<String> texts) {
    List<SignedNote.Key> keys = new ArrayList<>();
    Set<String> seen = new HashSet<>(Set.of(Bytes.hex(logKey.publicKey())));
    for (String text : texts) {
      SignedNote.Key key = required(SignedNote.key(text, SignedNote.COSIGNATURE), "malformed-key");
      require(seen.add(Bytes.hex(key.publicKey())), "malformed-key");
      keys.add(key);
    }
    return keys;
  }

  private static int requiredWitnesses(ProofOptions options) {
    if (options.witnesses() == null && options.minWitnesses() == null) return 0;
    int keyCount = options.witnesses() == null ? 0 : options.witnesses().size();
    int required = options.minWitnesses() == null ? keyCount : options.minWitnesses();
    if (required >= 1 && required <= keyCount) return required;
    throw ConsentException.hinted(
        "Proofs.verify", ErrorKind.CONFIG, "minWitnesses is 1 to the number of witnesses");
  }

  private static List<ProvenEntry.Cosigner> cosigners(SignedNote note, List<SignedNote.Key> keys) {
    List<ProvenEntry.Cosigner> cosigners = new ArrayList<>();
    for (SignedNote.Key key : keys) {
      Long time = note.cosignedAt(key);
      if (time != null) cosigners.add(new ProvenEntry.Cosigner(key.name(), time));
    }
    return cosigners;
  }

  /** @throws ConsentException proof; its code names the failed check */
  public static ProvenEntry verify(String text, ProofOptions options) {
    int required = requiredWitnesses(options);
    SignedNote.Key key = required(SignedNote.key(options.vkey(), SignedNote.ED25519), "malformed-key");
    List<SignedNote.Key> witnesses = options.witnesses() == null ? List.of() : witnessKeys(key, options.witnesses());
    Parsed proof = required(parse(text), "malformed-proof");
    SignedNote note = required(SignedNote.parse(proof.checkpoint()), "malformed-checkpoint");
    require(note.isBy(key), "not-signed");
    Checkpoint checkpoint = required(checkpoint(note.text()), "malformed-checkpoint");
    require(checkpoint.origin().equals(key.name()), "other-log");
    List<ProvenEntry.Cosigner> cosigners = cosigners(note, witnesses);
    require(cosigners.size() >= required, "not-witnessed");
    byte[] leaf = Inclusion.leafHash(proof.entry());
    byte[] root = Inclusion.root(leaf, proof.index(), checkpoint.size(), proof.path());
    require(Arrays.equals(root, checkpoint.root()), "not-included");
    Map<String, Object> entry = required(entry(proof.entry()), "malformed-entry");
    ProvenEntry found =
        new ProvenEntry(
            proof.index(),
            Bytes.hex(leaf),
            entry,
            checkpoint.origin(),
            checkpoint.size(),
            Bytes.hex(root),
            List.copyOf(cosigners));
    require(isExpected(found, options), "unexpected-entry");
    return found;
  }

  private static byte[] hashOfHex(String text) {
    return text != null && HEX.matcher(text).matches() ? HexFormat.of().parseHex(text) : null;
  }

  /**
   * Verifies that a log of {@code newSize} entries begins with all {@code oldSize} entries of an earlier checkpoint (RFC 9162
   * section 2.1.4.2). All hashes are lower-case hex.
   *
   * @throws ConsentException proof, with the code malformed-proof or not-consistent
   */
  public static void verifyConsistency(
      long oldSize, String oldRoot, long newSize, String newRoot, List<String> proof) {
    List<byte[]> path = proof.stream().map(Proofs::hashOfHex).toList();
    byte[] before = hashOfHex(oldRoot);
    byte[] after = hashOfHex(newRoot);
    boolean isSizes = Math.min(oldSize, newSize) >= 1 && Math.max(oldSize, newSize) <= Json.MAX_SAFE_INTEGER;
    boolean isPath = path.size() <= MAX_PATH && path.stream().noneMatch(Objects::isNull);
    String code = null;
    if (before == null || after == null || !isSizes || !isPath) code = "malformed-proof";
    else if (!Inclusion.isExtension(new Inclusion.Tree(oldSize, before), new Inclusion.Tree(newSize, after), path)) {
      code = "not-consistent";
    }
    if (code != null) throw ConsentException.of("Proofs.verifyConsistency", ErrorKind.PROOF, code);
  }
}
