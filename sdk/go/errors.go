package consent

import (
	"context"
	"errors"
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
	// Detail says why there is no answer, or none of gpd; empty if the kind says it all.
	Detail Detail
	// Hint is a remedy for the caller, without values of the call.
	Hint string
	// cause is an error of the system, which holds no secret: never what a RoundTripper returned.
	cause error
}

// Errors of each kind, for errors.Is. A timeout also is context.DeadlineExceeded.
var (
	ErrConfig           = errors.New("consent: config")
	ErrInvalidRequest   = errors.New("consent: invalid-request")
	ErrUnauthenticated  = errors.New("consent: unauthenticated")
	ErrPermissionDenied = errors.New("consent: permission-denied")
	ErrNotFound         = errors.New("consent: not-found")
	ErrConflict         = errors.New("consent: conflict")
	ErrRateLimited      = errors.New("consent: rate-limited")
	ErrServer           = errors.New("consent: server")
	ErrNetwork          = errors.New("consent: network")
	ErrTimeout          = errors.New("consent: timeout")
	ErrResponse         = errors.New("consent: response")
	ErrProof            = errors.New("consent: proof")
)

var sentinels = map[Kind]error{
	KindConfig: ErrConfig, KindInvalidRequest: ErrInvalidRequest, KindUnauthenticated: ErrUnauthenticated,
	KindPermissionDenied: ErrPermissionDenied, KindNotFound: ErrNotFound, KindConflict: ErrConflict,
	KindRateLimited: ErrRateLimited, KindServer: ErrServer, KindNetwork: ErrNetwork, KindTimeout: ErrTimeout,
	KindResponse: ErrResponse, KindProof: ErrProof,
}

// Is makes errors.Is work with the errors of each kind.
func (e *Error) Is(target error) bool {
	return target == sentinels[e.Kind] || (e.Kind == KindTimeout && target == context.DeadlineExceeded)
}

// Unwrap returns the failure of the system behind kind network, such as a *net.DNSError, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Timeout is that of net.Error.
func (e *Error) Timeout() bool { return e.Kind == KindTimeout }

func (e *Error) Error() string {
	text := "consent: " + e.Method + ": " + string(e.Kind)
	if e.Code != string(e.Kind) {
		text += " (" + e.Code + ")"
	}
	if e.Status != 0 {
		text += ", status " + strconv.Itoa(e.Status)
	}
	if e.Detail != "" {
		text += ", " + string(e.Detail)
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
	if kind, ok := kindOf[status]; ok {
		return kind
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
	if failure.Status == 0 {
		return failure, failure.Kind != KindConfig && failure.Kind != KindInvalidRequest
	}
	return failure, !alwaysRaised[failure.Status] && (failure.Status < 300 || failure.Status > 399)
}
