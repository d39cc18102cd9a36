package dev.gpd.consent;

import java.util.Arrays;
import java.util.List;

/** Verifies inclusion and consistency proofs: RFC 6962 hashes, RFC 9162 sections 2.1.3.2 and 2.1.4.2. */
final class Inclusion {
  private static final byte[] LEAF = {0};
  private static final byte[] NODE = {1};

  private Inclusion() {}

  static byte[] leafHash(byte[] entry) {
    return Bytes.sha256(LEAF, entry);
  }

  /** Returns the root that the path leads to; null if the path does not fit the index and the size. */
  static byte[] root(byte[] leaf, long index, long size, List<byte[]> path) {
    if (index >= size) return null;
    long node = index;
    long last = size - 1;
    byte[] hash = leaf;
    for (byte[] sibling : path) {
      if (last == 0) return null;
      boolean isLeft = (node & 1) == 0;
      if (isLeft && node != last) {
        hash = Bytes.sha256(NODE, hash, sibling);
      } else {
        hash = Bytes.sha256(NODE, sibling, hash);
        // At the right edge, a node without a sibling moves up to a level where it has one.
        while ((node & 1) == 0 && node != 0) {
          node >>= 1;
          last >>= 1;
        }
      }
      node >>= 1;
      last >>= 1;
    }
    return last == 0 ? hash : null;
  }

  record Tree(long size, byte[] root) {}

  /** True if the newer tree begins with all entries of the older one, which has at least one. */
  static boolean isExtension(Tree older, Tree newer, List<byte[]> proof) {
    if (older.size() >= newer.size()) {
      return older.size() == newer.size() && proof.isEmpty() && Arrays.equals(older.root(), newer.root());
    }
    if (proof.isEmpty()) return false;
    // The proof leaves out the first hash if the older tree is a complete subtree: it is the older root.
    boolean isWhole = Long.bitCount(older.size()) == 1;
    byte[] before = isWhole ? older.root() : proof.get(0);
    byte[] after = before;
    long node = older.size() - 1;
    long last = newer.size() - 1;
    int odd = Long.numberOfTrailingZeros(older.size());
    node >>= odd;
    last >>= odd;
    for (byte[] sibling : isWhole ? proof : proof.subList(1, proof.size())) {
      if (last == 0) return false;
      if ((node & 1) == 0 && node != last) {
        after = Bytes.sha256(NODE, after, sibling);
      } else {
        before = Bytes.sha256(NODE, sibling, before);
        after = Bytes.sha256(NODE, sibling, after);
        while ((node & 1) == 0 && node != 0) {
          node >>= 1;
          last >>= 1;
        }
      }
      node >>= 1;
      last >>= 1;
    }
    return last == 0 && Arrays.equals(before, older.root()) && Arrays.equals(after, newer.root());
  }
}
