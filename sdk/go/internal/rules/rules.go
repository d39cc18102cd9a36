// Package rules checks arguments before a call. Each rule returns a hint without values of the call, or an empty string.
package rules

import (
	"net/http"
	"regexp"
	"unicode/utf8"
)

// Recorder is a transport that notes the calls of a client: that of the fake.
type Recorder interface {
	Record(method string, args []any)
}

const (
	maxSeq    = 1<<53 - 1
	maxChecks = 100
)

var (
	requestID      = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	idempotencyKey = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)
)

// isText refuses invalid UTF-8: the encoder would replace it, and two ids could become one.
func isText(value string) bool { return value != "" && utf8.ValidString(value) }

func Principal(principalID string) string {
	if isText(principalID) {
		return ""
	}
	return "PrincipalID is a text in UTF-8 that is not empty"
}

// Text checks a text that must not be empty, such as a token.
func Text(name, value string) string {
	if isText(value) {
		return ""
	}
	return name + " is a text in UTF-8 that is not empty"
}

func Check(principalID, purpose string, minSeq *int64) string {
	if hint := Principal(principalID); hint != "" {
		return hint
	}
	if !isText(purpose) {
		return "Purpose is a text in UTF-8 that is not empty"
	}
	if minSeq != nil && !isSeq(*minSeq) {
		return "MinSeq is an integer from 0 on"
	}
	return ""
}

func Write(principalID string, purposes []string, key string) string {
	if hint := Principal(principalID); hint != "" {
		return hint
	}
	if len(purposes) == 0 {
		return "Purposes names at least one"
	}
	for _, purpose := range purposes {
		if !isText(purpose) {
			return "Purposes are texts in UTF-8 that are not empty"
		}
	}
	if key != "" && !idempotencyKey.MatchString(key) {
		return "IdempotencyKey is 1 to 255 visible ASCII characters"
	}
	return ""
}

// Page checks the arguments of May.
func Page(r *http.Request, purposes []string, principalID string) string {
	if r == nil {
		return "r is a request"
	}
	if len(purposes) > maxChecks {
		return "Purposes names at most 100"
	}
	for _, purpose := range purposes {
		if !isText(purpose) {
			return "Purposes are texts in UTF-8 that are not empty"
		}
	}
	if principalID == "" {
		return ""
	}
	return Principal(principalID)
}

func isSeq(seq int64) bool { return seq >= 0 && seq <= maxSeq }

func Seq(seq int64) string {
	if isSeq(seq) {
		return ""
	}
	return "seq is an integer from 0 on"
}

func RequestID(id string) string {
	if requestID.MatchString(id) {
		return ""
	}
	return "requestID is that of an ingest, req_…"
}

func Report(id, outcome string) string {
	if hint := RequestID(id); hint != "" {
		return hint
	}
	if !isText(outcome) {
		return "Outcome is a text in UTF-8 that is not empty"
	}
	return ""
}

// Asked is one check of a batch.
type Asked struct {
	PrincipalID string
	Purpose     string
	MinSeq      *int64
}

func Batch(checks []Asked) string {
	if len(checks) > maxChecks {
		return "one call takes 100 checks: they are of one snapshot"
	}
	for _, check := range checks {
		if hint := Check(check.PrincipalID, check.Purpose, nil); hint != "" {
			return hint
		}
		// Refused, because the request of a batch has no field for it.
		if check.MinSeq != nil {
			return "a batch has no MinSeq"
		}
	}
	return ""
}
