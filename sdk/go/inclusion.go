package consent

import "crypto/sha256"

// RFC 6962 hashes, and RFC 9162 section 2.1.3.2.

func leafHash(entry []byte) []byte {
	hash := sha256.New()
	hash.Write([]byte{0})
	hash.Write(entry)
	return hash.Sum(nil)
}

func nodeHash(left, right []byte) []byte {
	hash := sha256.New()
	hash.Write([]byte{1})
	hash.Write(left)
	hash.Write(right)
	return hash.Sum(nil)
}

// rootOf is the root that the path leads to; false when the path is not one of that index in a tree of that size.
func rootOf(leaf []byte, index, size int64, path [][]byte) ([]byte, bool) {
	if index >= size {
		return nil, false
	}
	node, last, hash := index, size-1, leaf
	for _, sibling := range path {
		if last == 0 {
			return nil, false
		}
		if node&1 == 0 && node != last {
			hash = nodeHash(hash, sibling)
		} else {
			hash = nodeHash(sibling, hash)
			// At the right edge a node without a sibling rises to where it has one.
			for node&1 == 0 && node != 0 {
				node, last = node>>1, last>>1
			}
		}
		node, last = node>>1, last>>1
	}
	return hash, last == 0
}
