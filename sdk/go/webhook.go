package consent

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// WebhookOptions are the options of VerifyWebhook.
type WebhookOptions struct {
	// Secrets are whsec_… as `gpd webhooks add` printed them; several while a secret is replaced.
	Secrets []string `json:"-"`
	// Tolerance is the allowed difference of a delivery's time; 0 means 5 minutes.
	Tolerance time.Duration
	// Now replaces the present time unless zero.
	Now time.Time
}

// Format never prints the secrets.
func (WebhookOptions) Format(state fmt.State, _ rune) { fmt.Fprint(state, "consent.WebhookOptions") }

// WebhookEvent is a verified delivery of gpd.
type WebhookEvent struct {
	// ID is equal for every delivery of one event.
	ID        string         `json:"id"`
	Type      string         `json:"type"`
	Timestamp string         `json:"timestamp"`
	Seq       int64          `json:"seq"`
	Data      map[string]any `json:"data"`
}

const verifyWebhookName = "VerifyWebhook"

func readSecrets(secrets []string) ([][]byte, bool) {
	keys := make([][]byte, 0, len(secrets))
	for _, secret := range secrets {
		key, ok := decodeBase64(strings.TrimPrefix(secret, "whsec_"))
		if !ok || !strings.HasPrefix(secret, "whsec_") || len(key) < 24 || len(key) > 64 {
			return nil, false
		}
		keys = append(keys, key)
	}
	return keys, len(keys) > 0
}

// headerOnce returns a header that must occur exactly once and must not be empty.
func headerOnce(header http.Header, name string) (string, bool) {
	var values []string
	for key, found := range header {
		if strings.EqualFold(key, name) {
			values = append(values, found...)
		}
	}
	if len(values) != 1 {
		return "", false
	}
	return values[0], values[0] != ""
}

func isSigned(keys [][]byte, signed []byte, signatures string) bool {
	isOne := false
	for _, item := range strings.Split(signatures, " ") {
		given, ok := decodeBase64(strings.TrimPrefix(item, "v1,"))
		if !ok || !strings.HasPrefix(item, "v1,") {
			continue
		}
		for _, key := range keys {
			mac := hmac.New(sha256.New, key)
			mac.Write(signed)
			isOne = hmac.Equal(mac.Sum(nil), given) || isOne
		}
	}
	return isOne
}

func readEvent(id string, body []byte) (WebhookEvent, bool) {
	object := parseObject(body)
	f := &fields{of: object, bad: object == nil}
	event := WebhookEvent{id, f.text("type"), f.text("timestamp"), f.integer("seq"), f.object("data")}
	return event, !f.bad
}

var webhookTime = regexp.MustCompile(`^\d{1,15}$`)

// VerifyWebhook verifies a delivery, signed as in Standard Webhooks (SPEC.md section 7). The body is the raw bytes of the request,
// unparsed. It fails with kind proof and a Code that names the failed check, or with kind config for an invalid secret.
func VerifyWebhook(body []byte, header http.Header, options WebhookOptions) (WebhookEvent, error) {
	keys, ok := readSecrets(options.Secrets)
	if !ok {
		hint := "Secrets are whsec_ and base64 of 24 to 64 bytes"
		return WebhookEvent{}, hinted(verifyWebhookName, KindConfig, hint)
	}
	if options.Tolerance < 0 {
		return WebhookEvent{}, hinted(verifyWebhookName, KindConfig, "Tolerance is not negative")
	}
	event, code := verifyWebhook(body, header, keys, options)
	if code != "" {
		return WebhookEvent{}, coded(verifyWebhookName, KindProof, code)
	}
	return event, nil
}

func verifyWebhook(body []byte, header http.Header, keys [][]byte, options WebhookOptions) (WebhookEvent, string) {
	id, hasID := headerOnce(header, "webhook-id")
	timestamp, hasTime := headerOnce(header, "webhook-timestamp")
	signatures, hasSignatures := headerOnce(header, "webhook-signature")
	if !hasID || !hasTime || !hasSignatures {
		return WebhookEvent{}, "missing-header"
	}
	if !webhookTime.MatchString(timestamp) {
		return WebhookEvent{}, "malformed-header"
	}
	if !isSigned(keys, append([]byte(id+"."+timestamp+"."), body...), signatures) {
		return WebhookEvent{}, "bad-signature"
	}
	if !options.isFresh(timestamp) {
		return WebhookEvent{}, "stale"
	}
	event, ok := readEvent(id, body)
	if !ok {
		return WebhookEvent{}, "malformed-event"
	}
	return event, ""
}

func (o WebhookOptions) isFresh(timestamp string) bool {
	tolerance, now := o.Tolerance, o.Now
	if tolerance == 0 {
		tolerance = 5 * time.Minute
	}
	if now.IsZero() {
		now = time.Now()
	}
	// Cannot fail: it has at most 15 digits.
	seconds, _ := strconv.ParseInt(timestamp, 10, 64)
	off := now.Unix() - seconds
	if off < 0 {
		off = -off
	}
	return off <= int64(tolerance/time.Second)
}

// SignWebhook returns the headers of a delivery as gpd signs it, for tests of a receiver.
func SignWebhook(body []byte, secret, id string, now time.Time) (http.Header, error) {
	keys, ok := readSecrets([]string{secret})
	if !ok {
		return nil, hinted("SignWebhook", KindConfig, "secret is whsec_ and base64 of 24 to 64 bytes")
	}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, keys[0])
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	header := http.Header{}
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", timestamp)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return header, nil
}
