package consent

import (
	"errors"
	"net/http"
	"strconv"
)

// Kind says what went wrong: the same strings in every language.
type Kind string

const (
	KindConfig           Kind = "config"
	KindInvalidRequest   Kind = "invalid-request"
	KindUnauthenticated  Kind = "unauthenticated"
	KindPermissionDenied Kind = "permission-denied"
	KindNotFound         Kind = "not-found"
	KindConflict         Kind = "conflict"
	KindRateLimited      Kind = "rate-limited"
	KindServer           Kind = "server"
	KindNetwork          Kind = "network"
	KindTimeout          Kind = "timeout"
	KindResponse         Kind = "response"
	KindProof            Kind = "proof"
)

// Error is the one error type of this package; get at it with errors.As. It holds no key, no principal id, and nothing that a
// server wrote in words. A cancelled context is context.Canceled and no Error.
type Error struct {
	// Method that was called.
	Method string
	Kind   Kind
	// Code of the server, "closed", why a proof fails, or the kind itself.
	Code string
	// Status of HTTP, or 0.
	Status int
	// RequestID names the server's log line, or is empty.
	RequestID string
	// RetryAfterSeconds is nil when the server told none.
	RetryAfterSeconds *int
	// Hint says what to mend, in words that hold no value of the caller's.
	Hint string
}

func (e *Error) Error() string {
	text := "consent: " + e.Method + ": " + string(e.Kind)
	if e.Code != string(e.Kind) {
		text += " (" + e.Code + ")"
	}
	if e.Status != 0 {
		text += ", status " + strconv.Itoa(e.Status)
	}
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
}

func plain(method string, kind Kind) *Error {
	return &Error{Method: method, Kind: kind, Code: string(kind)}
}

func hinted(method string, kind Kind, hint string) *Error {
	err := plain(method, kind)
	err.Hint = hint
	return err
}

func coded(method string, kind Kind, code string) *Error {
	return &Error{Method: method, Kind: kind, Code: code}
}

// Every 4xx that is not named here is the caller's request; what is neither 4xx nor 5xx is an odd answer.
func kindOfStatus(status int) Kind {
	switch status {
	case http.StatusUnauthorized:
		return KindUnauthenticated
	case http.StatusForbidden:
		return KindPermissionDenied
	case http.StatusNotFound:
		return KindNotFound
	case http.StatusRequestTimeout:
		return KindTimeout
	case http.StatusConflict:
		return KindConflict
	case http.StatusTooManyRequests:
		return KindRateLimited
	}
	switch {
	case status >= 500:
		return KindServer
	case status >= 400:
		return KindInvalidRequest
	}
	return KindResponse
}

// undecided tells whether a check may become a denial, and of what: all that the caller has to mend is raised instead.
func undecided(err error) (*Error, bool) {
	var failure *Error
	if !errors.As(err, &failure) {
		return nil, false
	}
	switch failure.Status {
	case 0:
		return failure, failure.Kind != KindConfig && failure.Kind != KindInvalidRequest
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity:
		return failure, false
	}
	return failure, true
}
