package consent

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// C2SP signed-note with Ed25519 keys: https://c2sp.org/signed-note, and cosignatures: https://c2sp.org/tlog-cosignature

const (
	algorithmEd25519 = 1
	// algorithmCosignature is the signature of a witness over a time and the note.
	algorithmCosignature = 4
	keyIDBytes           = 4
	timeBytes            = 8
	maxSignatures        = 64
)

type verifierKey struct {
	name   string
	id     []byte
	public ed25519.PublicKey
}

func isName(text string) bool {
	isForeign := func(r rune) bool { return r == '+' || unicode.IsSpace(r) || unicode.IsControl(r) }
	return text != "" && utf8.ValidString(text) && strings.IndexFunc(text, isForeign) < 0
}

// parseVerifierKey reads name+hex(id)+base64(algorithm ‖ public key). Base64 can contain + too, so only the first two separate the parts.
func parseVerifierKey(text string, algorithm byte) (verifierKey, bool) {
	parts := strings.SplitN(strings.TrimSpace(text), "+", 3)
	if len(parts) != 3 || !isName(parts[0]) {
		return verifierKey{}, false
	}
	typed, ok := decodeBase64(parts[2])
	if !ok || len(typed) != 1+ed25519.PublicKeySize || typed[0] != algorithm {
		return verifierKey{}, false
	}
	digest := sha256.Sum256(append([]byte(parts[0]+"\n"), typed...))
	id := digest[:keyIDBytes]
	return verifierKey{parts[0], id, ed25519.PublicKey(typed[1:])}, hex.EncodeToString(id) == parts[1]
}

type noteSignature struct {
	name  string
	bytes []byte
}

type signedNote struct {
	// text is signed, including its last newline.
	text       string
	signatures []noteSignature
}

func parseSignature(line string) (noteSignature, bool) {
	parts := strings.Split(line, " ")
	if len(parts) != 3 || parts[0] != "—" || !isName(parts[1]) {
		return noteSignature{}, false
	}
	decoded, ok := decodeBase64(parts[2])
	return noteSignature{parts[1], decoded}, ok && len(decoded) > keyIDBytes
}

// parseNote reads a note. Its text may have empty lines: the last one separates it from the signatures.
func parseNote(note string) (signedNote, bool) {
	gap := strings.LastIndex(note, "\n\n")
	isControl := func(r rune) bool { return r != '\n' && unicode.IsControl(r) }
	isText := utf8.ValidString(note) && strings.IndexFunc(note, isControl) < 0
	if gap < 0 || !strings.HasSuffix(note, "\n") || !isText {
		return signedNote{}, false
	}
	lines := strings.Split(strings.TrimSuffix(note[gap+2:], "\n"), "\n")
	if len(lines) > maxSignatures {
		return signedNote{}, false
	}
	parsed := signedNote{text: note[:gap+1]}
	for _, line := range lines {
		signature, ok := parseSignature(line)
		if !ok {
			return signedNote{}, false
		}
		parsed.signatures = append(parsed.signatures, signature)
	}
	return parsed, true
}

// linesOf returns the signatures of all lines with the name and id of this key.
func (n signedNote) linesOf(key verifierKey) [][]byte {
	var lines [][]byte
	for _, signature := range n.signatures {
		if signature.name == key.name && bytes.HasPrefix(signature.bytes, key.id) {
			lines = append(lines, signature.bytes[keyIDBytes:])
		}
	}
	return lines
}

// isBy is true if the key has signed the note and all signatures under its name and id are valid.
func (n signedNote) isBy(key verifierKey) bool {
	lines := n.linesOf(key)
	for _, signature := range lines {
		if !ed25519.Verify(key.public, []byte(n.text), signature) {
			return false
		}
	}
	return len(lines) > 0
}

// cosignedAt returns the epoch seconds of this witness's latest cosignature; false if there is none or one is invalid.
func (n signedNote) cosignedAt(key verifierKey) (int64, bool) {
	latest, lines := int64(0), n.linesOf(key)
	for _, line := range lines {
		if len(line) != timeBytes+ed25519.SignatureSize {
			return 0, false
		}
		time := binary.BigEndian.Uint64(line)
		message := fmt.Sprintf("cosignature/v1\ntime %d\n%s", time, n.text)
		if time > maxSafeInteger || !ed25519.Verify(key.public, []byte(message), line[timeBytes:]) {
			return 0, false
		}
		if int64(time) > latest {
			latest = int64(time)
		}
	}
	return latest, len(lines) > 0
}
