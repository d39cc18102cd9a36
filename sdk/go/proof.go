package consent

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ProofOptions has the key under which a proof must verify, and the expected entry.
type ProofOptions struct {
	// VKey is the log's verifier key, which you got once independently of the proof, and store.
	VKey string
	// Seq and Hash are those of a decision's proof. Without them, a valid proof of another entry passes.
	Seq  *int64
	Hash string
	// Type is such as "consent.granted". An empty Type, Hash or Purpose is not compared.
	Type    string
	Purpose string
	// Witnesses are verifier keys that you trust, pinned like VKey; nil requires none.
	Witnesses []string
	// MinWitnesses is the required number of cosignatures; 0 means all.
	MinWitnesses int
}

// Cosigner is a witness that cosigned a checkpoint.
type Cosigner struct {
	Name string `json:"name"`
	// Time is in epoch seconds: then it knew no larger tree of the log.
	Time int64 `json:"time"`
}

// ProvenEntry is the entry that a proof proves.
type ProvenEntry struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
	// Entry is the decoded JSON; subject and body of a personal entry are commitments.
	Entry map[string]any `json:"entry"`
	// Origin is the log's name.
	Origin string `json:"origin"`
	// Size and Root are those of the log that the checkpoint signs.
	Size int64  `json:"size"`
	Root string `json:"root"`
	// Witnesses are those of ProofOptions.Witnesses that have cosigned.
	Witnesses []Cosigner `json:"witnesses"`
}

const maxPath = 63

// decodeBase64 accepts only canonical padded base64: with two spellings of one value, a proof could be changed unnoticed. The
// standard decoder also ignores newlines.
func decodeBase64(text string) ([]byte, bool) {
	decoded, err := base64.StdEncoding.DecodeString(text)
	return decoded, err == nil && base64.StdEncoding.EncodeToString(decoded) == text
}

func decodeHash(text string) ([]byte, bool) {
	decoded, ok := decodeBase64(text)
	return decoded, ok && len(decoded) == 32
}

// parseDecimal accepts no sign, no leading zero and at most 2^53-1.
func parseDecimal(text string) (int64, bool) {
	value, err := strconv.ParseInt(text, 10, 64)
	return value, err == nil && value <= maxSafeInteger && value >= 0 && strconv.FormatInt(value, 10) == text
}

type tlogProof struct {
	entry      []byte
	index      int64
	path       [][]byte
	checkpoint string
}

func parseProof(text string) (tlogProof, bool) {
	head, checkpoint, found := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	if !found || len(lines) < 3 || len(lines) > 3+maxPath || lines[0] != "c2sp.org/tlog-proof@v1" {
		return tlogProof{}, false
	}
	if !strings.HasPrefix(lines[1], "extra ") || !strings.HasPrefix(lines[2], "index ") {
		return tlogProof{}, false
	}
	entry, isEntry := decodeBase64(lines[1][len("extra "):])
	index, isIndex := parseDecimal(lines[2][len("index "):])
	proof := tlogProof{entry: entry, index: index, checkpoint: checkpoint}
	for _, line := range lines[3:] {
		hash, ok := decodeHash(line)
		if !ok {
			return tlogProof{}, false
		}
		proof.path = append(proof.path, hash)
	}
	return proof, isEntry && isIndex
}

type checkpoint struct {
	origin string
	size   int64
	root   []byte
}

func parseCheckpoint(text string) (checkpoint, bool) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[0] == "" || lines[3] != "" {
		return checkpoint{}, false
	}
	size, isSize := parseDecimal(lines[1])
	root, isRoot := decodeHash(lines[2])
	return checkpoint{lines[0], size, root}, isSize && isRoot
}

func parseEntry(body []byte) map[string]any {
	entry := parseObject(body)
	if _, isText := entry["type"].(string); !isText || entry["v"] != 1.0 || !utf8.Valid(body) {
		return nil
	}
	return entry
}

func (found ProvenEntry) is(expected ProofOptions) bool {
	return (expected.Seq == nil || *expected.Seq == found.Seq) &&
		(expected.Hash == "" || expected.Hash == found.Hash) &&
		(expected.Type == "" || expected.Type == found.Entry["type"]) &&
		(expected.Purpose == "" || expected.Purpose == found.Entry["purpose"])
}

// VerifyProof checks a c2sp.org/tlog-proof@v1 with its entry, offline (SPEC.md section 6). It fails with kind proof; the Code names
// the failed check.
func VerifyProof(text string, options ProofOptions) (ProvenEntry, error) {
	minWitnesses := options.MinWitnesses
	if minWitnesses == 0 {
		minWitnesses = len(options.Witnesses)
	}
	requiresWitnesses := options.Witnesses != nil || options.MinWitnesses != 0
	if requiresWitnesses && (minWitnesses < 1 || minWitnesses > len(options.Witnesses)) {
		return ProvenEntry{}, hinted("VerifyProof", KindConfig, "MinWitnesses is 1 to the number of Witnesses")
	}
	found, code := verifyProof(text, options, minWitnesses)
	if code != "" {
		return ProvenEntry{}, coded("VerifyProof", KindProof, code)
	}
	return found, nil
}

// witnessKeys refuses a key that appears twice, because it would count twice, and the log's own key, which is no witness.
func witnessKeys(logKey verifierKey, texts []string) ([]verifierKey, bool) {
	keys := []verifierKey{}
	seen := map[string]bool{string(logKey.public): true}
	for _, text := range texts {
		key, ok := parseVerifierKey(text, algorithmCosignature)
		if !ok || seen[string(key.public)] {
			return nil, false
		}
		seen[string(key.public)] = true
		keys = append(keys, key)
	}
	return keys, true
}

func cosignersOf(note signedNote, keys []verifierKey) []Cosigner {
	cosigners := []Cosigner{}
	for _, key := range keys {
		if time, ok := note.cosignedAt(key); ok {
			cosigners = append(cosigners, Cosigner{key.name, time})
		}
	}
	return cosigners
}

func verifyProof(text string, options ProofOptions, minWitnesses int) (ProvenEntry, string) {
	key, ok := parseVerifierKey(options.VKey, algorithmEd25519)
	if !ok {
		return ProvenEntry{}, "malformed-key"
	}
	witnesses, ok := witnessKeys(key, options.Witnesses)
	if !ok {
		return ProvenEntry{}, "malformed-key"
	}
	proof, ok := parseProof(text)
	if !ok {
		return ProvenEntry{}, "malformed-proof"
	}
	signed, ok := parseNote(proof.checkpoint)
	if !ok {
		return ProvenEntry{}, "malformed-checkpoint"
	}
	if !signed.isBy(key) {
		return ProvenEntry{}, "not-signed"
	}
	point, ok := parseCheckpoint(signed.text)
	if !ok {
		return ProvenEntry{}, "malformed-checkpoint"
	}
	if point.origin != key.name {
		return ProvenEntry{}, "other-log"
	}
	cosigners := cosignersOf(signed, witnesses)
	if len(cosigners) < minWitnesses {
		return ProvenEntry{}, "not-witnessed"
	}
	leaf := leafHash(proof.entry)
	root, ok := rootOf(leaf, proof.index, point.size, proof.path)
	if !ok || !bytes.Equal(root, point.root) {
		return ProvenEntry{}, "not-included"
	}
	entry := parseEntry(proof.entry)
	if entry == nil {
		return ProvenEntry{}, "malformed-entry"
	}
	found := ProvenEntry{
		Seq: proof.index, Hash: hex.EncodeToString(leaf), Entry: entry,
		Origin: point.origin, Size: point.size, Root: hex.EncodeToString(root),
		Witnesses: cosigners,
	}
	if !found.is(options) {
		return ProvenEntry{}, "unexpected-entry"
	}
	return found, ""
}

func decodeHex(text string) ([]byte, bool) {
	decoded, err := hex.DecodeString(text)
	return decoded, err == nil && len(decoded) == 32 && hex.EncodeToString(decoded) == text
}

// VerifyConsistency verifies that a log of newSize entries begins with all oldSize entries of an earlier checkpoint (RFC 9162 section
// 2.1.4.2). All hashes are lower-case hex. It fails with kind proof and the Code "malformed-proof" or "not-consistent".
func VerifyConsistency(oldSize int64, oldRoot string, newSize int64, newRoot string, proof []string) error {
	before, isOld := decodeHex(oldRoot)
	after, isNew := decodeHex(newRoot)
	isSizes := oldSize >= 1 && newSize >= 1 && oldSize <= maxSafeInteger && newSize <= maxSafeInteger
	whole := isOld && isNew && isSizes && len(proof) <= maxPath
	path := make([][]byte, 0, len(proof))
	for _, text := range proof {
		hash, ok := decodeHex(text)
		path, whole = append(path, hash), whole && ok
	}
	if !whole {
		return coded("VerifyConsistency", KindProof, "malformed-proof")
	}
	if !isExtension(oldSize, before, newSize, after, path) {
		return coded("VerifyConsistency", KindProof, "not-consistent")
	}
	return nil
}
