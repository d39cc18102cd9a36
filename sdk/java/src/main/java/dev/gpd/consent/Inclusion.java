package dev.gpd.consent;

import java.util.List;

/** RFC 6962 hashes, and RFC 9162 section 2.1.3.2. */
final class Inclusion {
  private static final byte[] LEAF = {0};
  private static final byte[] NODE = {1};

  private Inclusion() {}

  static byte[] leafHash(byte[] entry) {
    return Bytes.sha256(LEAF, entry);
  }

  /** The root that the path leads to; null when it is no path of that index in a tree of that size. */
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
        // At the right edge a node without a sibling rises to where it has one.
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
}
