package consenttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"time"
)

const (
	tenant = "fake"
	keyID  = "fake-key"
)

// signer signs the states of a fake with a key that only this fake has.
type signer struct {
	key *ecdsa.PrivateKey
	// principals by their reference.
	principals map[string]string
}

func newSigner() *signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic("consenttest: the system has no source of chance")
	}
	return &signer{key, map[string]string{}}
}

// jwks returns the key as GET /v1/consent/state-keys does.
func (s *signer) jwks() map[string]any {
	x, y := make([]byte, 32), make([]byte, 32)
	s.key.X.FillBytes(x)
	s.key.Y.FillBytes(y)
	raw := base64.RawURLEncoding
	return map[string]any{"tenant": tenant, "keys": []map[string]string{{
		"kid": keyID, "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig",
		"x": raw.EncodeToString(x), "y": raw.EncodeToString(y),
	}}}
}

func subjectOf(principalID string) string {
	digest := sha256.Sum256([]byte("fake subject " + principalID))
	return hex.EncodeToString(digest[:])
}

func encode(value any) string {
	// Texts and integers cannot fail to encode.
	text, _ := json.Marshal(value)
	return base64.RawURLEncoding.EncodeToString(text)
}

func (s *signer) sign(principalID string, purposes []string, seq int64, now time.Time) string {
	subject := subjectOf(principalID)
	s.principals[subject] = principalID
	claims := map[string]any{
		"iss": "https://fake.example", "kid": tenant, "sub": subject,
		"iat": now.Unix(), "exp": now.Unix() + 300, "p": purposes, "seq": seq,
	}
	message := encode(map[string]string{"alg": "ES256", "kid": keyID, "typ": "JWT"}) + "." + encode(claims)
	digest := sha256.Sum256([]byte(message))
	r, t, err := ecdsa.Sign(rand.Reader, s.key, digest[:])
	if err != nil {
		panic("consenttest: the system has no source of chance")
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	t.FillBytes(signature[32:])
	return message + "." + base64.RawURLEncoding.EncodeToString(signature)
}
