// Package visitor answers a server that renders (SPEC.md section 10). The client and the fake share it.
package visitor

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

const (
	cookieName     = "gpd_consent"
	maxStateLength = 4096
	maxAge         = 5 * time.Minute
	// maxSkew is the tolerated difference between the clocks of gpd and this machine.
	maxSkew = time.Minute
	// cookieSeconds are 400 days, as the banner has it: the cookie of a visitor who comes back after a month is renewed.
	cookieSeconds  = 34_560_000
	maxSafeInteger = 1<<53 - 1
	// maxSeconds is 9999-12-31T23:59:59Z, after which not every language can write the time.
	maxSeconds = 253_402_300_799
)

// order is n of P-256: both halves of a signature are 1 to n-1. Some libraries once accepted zero.
var order, _ = new(big.Int).SetString("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", 16)

// Signed is a state that was parsed. Its signature was not verified yet.
type Signed struct {
	// Text is the whole JWS.
	Text    string
	keyID   string
	message string
	r, s    *big.Int
	tenant  string
	// Subject is gpd's reference of the person, not the principal id.
	Subject   string
	issuedAt  time.Time
	expiresAt time.Time
	purposes  []string
	seq       int64
}

// At returns the time of the signature as the wire writes times.
func (s *Signed) At() string { return s.issuedAt.UTC().Format("2006-01-02T15:04:05.000Z") }

// isEarly is true for a state that cannot be gpd's, because it was signed in the future.
func (s *Signed) isEarly(now time.Time) bool { return s.issuedAt.After(now.Add(maxSkew)) }

// isFresh is false after five minutes, whatever the state says itself.
func (s *Signed) isFresh(now time.Time) bool {
	return now.Before(s.expiresAt) && now.Before(s.issuedAt.Add(maxAge))
}

// readCookie returns "" unless there is exactly one such cookie: nobody can say which of two is the newer one.
func readCookie(header string) string {
	found, count := "", 0
	for _, pair := range strings.Split(header, ";") {
		if pair = strings.TrimSpace(pair); strings.HasPrefix(pair, cookieName+"=") {
			found, count = strings.TrimPrefix(pair, cookieName+"="), count+1
		}
	}
	if count != 1 {
		return ""
	}
	return found
}

// decodePart accepts only canonical base64url without padding.
func decodePart(part string) []byte {
	data, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil || base64.RawURLEncoding.EncodeToString(data) != part {
		return nil
	}
	return data
}

// parsePart decodes into a map and not into a struct, because encoding/json ignores the case of keys.
func parsePart(part string) map[string]any {
	var value map[string]any
	if json.Unmarshal(decodePart(part), &value) != nil {
		return nil
	}
	return value
}

func integer(value any, most float64) (int64, bool) {
	number, ok := value.(float64)
	return int64(number), ok && number >= 0 && number <= most && number == math.Trunc(number)
}

// Texts returns a list of strings; false for any other value.
func Texts(value any) ([]string, bool) {
	list, ok := value.([]any)
	texts := make([]string, len(list))
	for i, item := range list {
		text, isText := item.(string)
		texts[i], ok = text, ok && isText
	}
	return texts, ok
}

// Parse returns nil for a malformed state or another algorithm.
func Parse(text string) *Signed {
	parts := strings.Split(text, ".")
	if len(text) > maxStateLength || len(parts) != 3 {
		return nil
	}
	header, claims, signature := parsePart(parts[0]), parsePart(parts[1]), decodePart(parts[2])
	keyID, hasKeyID := header["kid"].(string)
	_, isCritical := header["crit"]
	if header["alg"] != "ES256" || header["typ"] != "JWT" || !hasKeyID || isCritical || len(signature) != 64 {
		return nil
	}
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	if r.Sign() == 0 || s.Sign() == 0 || r.Cmp(order) >= 0 || s.Cmp(order) >= 0 {
		return nil
	}
	tenant, hasTenant := claims["kid"].(string)
	subject, hasSubject := claims["sub"].(string)
	issuedAt, hasIssued := integer(claims["iat"], maxSeconds)
	expiresAt, hasExpiry := integer(claims["exp"], maxSeconds)
	purposes, hasPurposes := Texts(claims["p"])
	seq, hasSeq := integer(claims["seq"], maxSafeInteger)
	if !hasTenant || !hasSubject || !hasIssued || !hasExpiry || !hasPurposes || !hasSeq {
		return nil
	}
	return &Signed{
		Text: text, keyID: keyID, message: parts[0] + "." + parts[1], r: r, s: s, tenant: tenant, Subject: subject,
		issuedAt: time.Unix(issuedAt, 0), expiresAt: time.Unix(expiresAt, 0), purposes: purposes, seq: seq,
	}
}

// setCookieOf makes a cookie that scripts can read, because the banner has to end it the moment that somebody refuses.
func setCookieOf(state, domain string) string {
	age := cookieSeconds
	if state == "" {
		age = 0
	}
	cookie := cookieName + "=" + state + "; Path=/; Max-Age=" + strconv.Itoa(age) + "; SameSite=Lax; Secure"
	if domain != "" {
		cookie += "; Domain=" + domain
	}
	return cookie
}
