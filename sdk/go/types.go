package consent

import (
	"context"
	"fmt"
)

// ProofRef is the place of an entry in the tenant's log.
type ProofRef struct {
	Seq int64 `json:"seq"`
	// Hash is 64 lower-case hex digits: SHA-256(0x00 ‖ entry).
	Hash string `json:"hash"`
}

// Check asks whether one person's data may be processed for one purpose.
type Check struct {
	// PrincipalID is your own id of the person.
	PrincipalID string `json:"principalId"`
	Purpose     string `json:"purpose"`
	// MinSeq decides only from a log that has reached this entry, such as the Seq of a write. Not for CanProcessMany.
	MinSeq *int64 `json:"minSeq,omitempty"`
}

// Decision with its reason and its proof.
type Decision struct {
	Allowed bool `json:"allowed"`
	// Reason is one of the known ones, or that of a later server.
	Reason string `json:"reason"`
	// Proof is nil only when nothing could be decided.
	Proof         *ProofRef `json:"proof"`
	PolicyVersion *int64    `json:"policyVersion"`
	// ExpiresAt is an ISO time, or nil for never.
	ExpiresAt *string `json:"expiresAt"`
	// Given says who gave the grant that it rests on: person, agent, automation or unknown.
	Given string `json:"given"`
	// Err says why nothing could be decided, so that it can be logged; nil for a decision of the server.
	Err error `json:"-"`
}

// Write is what a person says about purposes.
type Write struct {
	PrincipalID string   `json:"principalId"`
	Purposes    []string `json:"purposes"`
	// PolicyVersion of the text that was shown; the current one when nil.
	PolicyVersion *int64 `json:"policyVersion,omitempty"`
	// GPC true opts out of every purpose that heeds it; false ends that for the purposes of this grant alone; nil changes nothing.
	GPC *bool `json:"gpc,omitempty"`
	// OverGPC is a specific yes over the signal, for Grant alone, with GPC true and one purpose whose policy is ask.
	OverGPC bool `json:"overGpc,omitempty"`
	// IdempotencyKey names a write to be able to repeat it later; else each call gets one of its own.
	IdempotencyKey string `json:"-"`
}

// WrittenEntry is one entry of a write.
type WrittenEntry struct {
	Purpose string `json:"purpose"`
	ProofRef
}

// WriteResult has one entry a purpose; Seq and Hash beside are the last one's.
type WriteResult struct {
	Entries []WrittenEntry `json:"entries"`
	ProofRef
}

// PurposeState is a decision and what the person said.
type PurposeState struct {
	Purpose string  `json:"purpose"`
	Choice  *string `json:"choice"`
	At      *string `json:"at"`
	Decision
}

// State is what a person said last, purpose by purpose.
type State struct {
	PrincipalID string         `json:"principalId"`
	Purposes    []PurposeState `json:"purposes"`
}

// Page of a history.
type Page struct {
	Cursor string
	// Limit is the server's default when 0.
	Limit int
}

// Event is one thing that a person said.
type Event struct {
	Seq           int64   `json:"seq"`
	Type          string  `json:"type"`
	Purpose       string  `json:"purpose"`
	Time          string  `json:"time"`
	PolicyVersion *int64  `json:"policyVersion"`
	GPC           bool    `json:"gpc"`
	Source        string  `json:"source"`
	ExpiresAt     *string `json:"expiresAt"`
	// OverGPC: the person overruled the signal.
	OverGPC bool `json:"overGpc,omitempty"`
}

// History is newest first.
type History struct {
	PrincipalID string  `json:"principalId"`
	Events      []Event `json:"events"`
	// NextCursor is for the next page; nil on the last.
	NextCursor *string `json:"nextCursor"`
}

// Session is a token for one person's browser.
type Session struct {
	Token       string `json:"token"`
	PrincipalID string `json:"principalId"`
	ExpiresAt   string `json:"expiresAt"`
}

// Format prints what a log may have: not the token, and not the id of the person. The JSON has both, for the browser it is meant for.
func (s Session) Format(state fmt.State, _ rune) {
	fmt.Fprintf(state, "consent.Session{ExpiresAt: %q}", s.ExpiresAt)
}

// Receipt is a signed copy of one entry, for the person it is about.
type Receipt struct {
	Receipt map[string]any `json:"receipt"`
	// JWS is compact, EdDSA under the key of the tenant's log.
	JWS string         `json:"jws"`
	JWK map[string]any `json:"jwk"`
}

// Verdict of one ingest.
type Verdict struct {
	RequestID    string
	Class        string
	Reason       string
	VisitorID    *string
	Confidence   float64
	DecidedAt    string
	SuspectScore *float64
	// Restricted: a contest is open, do not act on this verdict.
	Restricted bool
	// Attested is nil where only signals identified the device.
	Attested *Attested
	// Fields is all that the server told, in the names of the wire.
	Fields map[string]any
}

// Attested is a key of the device: a passkey distinguished it from identical ones. It does not say who uses it.
type Attested struct {
	By          string
	DeviceBound bool
}

// OutcomeReport says what became of a decision.
type OutcomeReport struct {
	// Outcome is fraud, chargeback, passed-step-up, false-alarm or other.
	Outcome string `json:"outcome"`
	// At is when it became known, in RFC 3339; when the report comes in, if empty.
	At string `json:"at,omitempty"`
}

// ReportedOutcome is what is stored of a decision.
type ReportedOutcome struct {
	RequestID string `json:"requestId"`
	Outcome   string `json:"outcome"`
	At        string `json:"at"`
}

// Health of the server; says nothing about the key.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

// Consent is what a Client and the fake of package consenttest have in common.
type Consent interface {
	IsAllowed(ctx context.Context, check Check) (bool, error)
	CanProcess(ctx context.Context, check Check) (Decision, error)
	CanProcessMany(ctx context.Context, checks []Check) ([]Decision, error)
	Grant(ctx context.Context, write Write) (WriteResult, error)
	Deny(ctx context.Context, write Write) (WriteResult, error)
	Withdraw(ctx context.Context, write Write) (WriteResult, error)
	State(ctx context.Context, principalID string) (State, error)
	History(ctx context.Context, principalID string, page Page) (History, error)
	Receipt(ctx context.Context, seq int64) (Receipt, error)
	Proof(ctx context.Context, seq int64) (string, error)
	Decision(ctx context.Context, requestID string) (Verdict, error)
	ReportOutcome(ctx context.Context, requestID string, report OutcomeReport) (ReportedOutcome, error)
	Ping(ctx context.Context) (Health, error)
	Close() error
}
