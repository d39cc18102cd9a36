package consent

import (
	"errors"
	"net/http"
	"strconv"
)

// Kind is the kind of an error, with the same strings in every language.
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

// Error is the only error type of this package; get it with errors.As. It contains no key, no principal id and no text of a server.
// For a cancelled context the error is context.Canceled instead.
type Error struct {
	// Method is the called method.
	Method string
	Kind   Kind
	// Code is the server's error code, "closed", the reason why a proof fails, or else the kind.
	Code string
	// Status is the HTTP status, or 0.
	Status int
	// RequestID identifies the request in the server's log; may be empty.
	RequestID string
	// RetryAfterSeconds is nil if the server sent none.
	RetryAfterSeconds *int
	// Hint is a remedy for the caller, without values of the call.
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

// Other 4xx mean an invalid request; a status that is neither 4xx nor 5xx means a malformed response.
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

// undecided is true if a check may become a denial. Errors that the caller has to fix are returned instead.
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
