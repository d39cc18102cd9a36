package consent

import (
	"bytes"
	"crypto/sha256"
)

// Verifies inclusion and consistency proofs: RFC 6962 hashes, RFC 9162 sections 2.1.3.2 and 2.1.4.2.

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

// rootOf returns the root that the path leads to; false if the path does not fit the index and the size.
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
			// At the right edge, a node without a sibling moves up to a level where it has one.
			for node&1 == 0 && node != 0 {
				node, last = node>>1, last>>1
			}
		}
		node, last = node>>1, last>>1
	}
	return hash, last == 0
}

// isExtension is true if the newer tree begins with all entries of the older one, which has at least one.
func isExtension(oldSize int64, oldRoot []byte, newSize int64, newRoot []byte, proof [][]byte) bool {
	if oldSize >= newSize {
		return oldSize == newSize && len(proof) == 0 && bytes.Equal(oldRoot, newRoot)
	}
	if len(proof) == 0 {
		return false
	}
	start, rest := proof[0], proof[1:]
	if oldSize&(oldSize-1) == 0 {
		// The proof leaves out the first hash if the older tree is a complete subtree: it is the older root.
		start, rest = oldRoot, proof
	}
	node, last := oldSize-1, newSize-1
	for node&1 == 1 {
		node, last = node>>1, last>>1
	}
	before, after := start, start
	for _, sibling := range rest {
		if last == 0 {
			return false
		}
		if node&1 == 0 && node != last {
			after = nodeHash(after, sibling)
		} else {
			before, after = nodeHash(sibling, before), nodeHash(sibling, after)
			for node&1 == 0 && node != 0 {
				node, last = node>>1, last>>1
			}
		}
		node, last = node>>1, last>>1
	}
	return last == 0 && bytes.Equal(before, oldRoot) && bytes.Equal(after, newRoot)
}
