package consent

import (
	"context"
	"fmt"
	"net/http"
	"time"
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

// Decision is a decision with its reason and its proof.
type Decision struct {
	Allowed bool `json:"allowed"`
	// Reason is a known reason, or one of a newer server.
	Reason string `json:"reason"`
	// Proof is nil only if the check could not be decided.
	Proof         *ProofRef `json:"proof"`
	PolicyVersion *int64    `json:"policyVersion"`
	// ExpiresAt is an ISO time, or nil for never.
	ExpiresAt *string `json:"expiresAt"`
	// Given is the origin of the grant behind the decision: person, agent, automation or unknown.
	Given string `json:"given"`
	// Subject is the reference of the person that the events subject.erased and subject.linked carry.
	Subject string `json:"subject,omitempty"`
	// Err is the reason why the check could not be decided, for logs; nil for a decision of the server.
	Err error `json:"-"`
}

// Expires returns ExpiresAt as a time; false for never.
func (d Decision) Expires() (time.Time, bool) { return timeOf(d.ExpiresAt) }

func timeOf(text *string) (time.Time, bool) {
	if text == nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, *text)
	return at, err == nil
}

// Write is a person's choice about purposes.
type Write struct {
	PrincipalID string   `json:"principalId"`
	Purposes    []string `json:"purposes"`
	// PolicyVersion is the version of the text that was shown; nil means the current one.
	PolicyVersion *int64 `json:"policyVersion,omitempty"`
	// GPC true opts out of every purpose that honours it; false ends that for the purposes of this grant only; nil changes nothing.
	GPC *bool `json:"gpc,omitempty"`
	// OverGPC is a specific consent despite the signal, only for Grant, with GPC true and one purpose whose policy is ask.
	OverGPC bool `json:"overGpc,omitempty"`
	// IdempotencyKey allows you to repeat the write later; by default each call gets a random one.
	IdempotencyKey string `json:"-"`
}

// WrittenEntry is one entry of a write.
type WrittenEntry struct {
	Purpose string `json:"purpose"`
	ProofRef
}

// WriteResult has one entry per purpose. Its Seq and Hash are those of the last entry.
type WriteResult struct {
	Entries []WrittenEntry `json:"entries"`
	ProofRef
}

// PurposeState is a decision and the person's choice.
type PurposeState struct {
	Purpose string  `json:"purpose"`
	Choice  *string `json:"choice"`
	At      *string `json:"at"`
	Decision
}

// State is a person's latest choice for each purpose.
type State struct {
	PrincipalID string         `json:"principalId"`
	Purposes    []PurposeState `json:"purposes"`
	// Subject is the reference of the person that the events subject.erased and subject.linked carry.
	Subject string `json:"subject,omitempty"`
}

// Page selects a page of a history.
type Page struct {
	Cursor string
	// Limit 0 means the server's default.
	Limit int
}

// Event is one choice of a person.
type Event struct {
	Seq           int64   `json:"seq"`
	Type          string  `json:"type"`
	Purpose       string  `json:"purpose"`
	Time          string  `json:"time"`
	PolicyVersion *int64  `json:"policyVersion"`
	GPC           bool    `json:"gpc"`
	Source        string  `json:"source"`
	ExpiresAt     *string `json:"expiresAt"`
	// OverGPC is true if the person agreed despite the signal.
	OverGPC bool `json:"overGpc,omitempty"`
}

// Happened returns Time as a time; false if it is none.
func (e Event) Happened() (time.Time, bool) { return timeOf(&e.Time) }

// Expires returns ExpiresAt as a time; false for never.
func (e Event) Expires() (time.Time, bool) { return timeOf(e.ExpiresAt) }

// History is newest first.
type History struct {
	PrincipalID string  `json:"principalId"`
	Events      []Event `json:"events"`
	// NextCursor requests the next page; nil on the last.
	NextCursor *string `json:"nextCursor"`
}

// Session is a token for one person's browser.
type Session struct {
	Token       string `json:"token"`
	PrincipalID string `json:"principalId"`
	ExpiresAt   string `json:"expiresAt"`
	// Subject is the reference that the events subject.erased and subject.linked carry.
	Subject string `json:"subject,omitempty"`
}

// Expires returns ExpiresAt as a time; false if it is none.
func (s Session) Expires() (time.Time, bool) { return timeOf(&s.ExpiresAt) }

// BrowserPrincipal is the principal of a browser, as the banner keeps it.
type BrowserPrincipal struct {
	PrincipalID     string `json:"principalId"`
	PrincipalSecret string `json:"principalSecret"`
}

// PurposeDefinition defines or changes a purpose. Nil takes the default of gpd.
type PurposeDefinition struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	LawfulBasis string `json:"lawfulBasis,omitempty"`
	// GPC is opt-out, ask or ignore.
	GPC     string `json:"gpc,omitempty"`
	TTLDays int64  `json:"ttlDays,omitempty"`
	// Banner false: the banner never asks for it.
	Banner *bool `json:"banner,omitempty"`
	// Material false: the change asks nobody again.
	Material *bool `json:"material,omitempty"`
}

// Format prints neither the token nor the id of the person, so that logs are safe. The JSON has both, for the person's browser.
func (s Session) Format(state fmt.State, _ rune) {
	fmt.Fprintf(state, "consent.Session{ExpiresAt: %q}", s.ExpiresAt)
}

// Receipt is a signed copy of an entry, for the person it is about.
type Receipt struct {
	Receipt map[string]any `json:"receipt"`
	// JWS is compact, EdDSA under the key of the tenant's log.
	JWS string         `json:"jws"`
	JWK map[string]any `json:"jwk"`
}

// Verdict is the verdict of a visit.
type Verdict struct {
	RequestID    string
	Class        string
	Reason       string
	VisitorID    *string
	Confidence   float64
	DecidedAt    string
	SuspectScore *float64
	// Restricted means that a contest is open: do not act on this verdict.
	Restricted bool
	// Attested is nil if only signals identified the device.
	Attested *Attested
	// Ref is the reference that the event decision.erased carries.
	Ref string
	// Context is the reason of this visit, as the page named it in identify, such as an order; empty without one.
	Context string
	// Fields is the whole answer of the server, with the names of the wire.
	Fields map[string]any
}

// Attested is a key of the device: a passkey distinguished it from identical ones. It does not say who uses it.
type Attested struct {
	By          string
	DeviceBound bool
}

// OutcomeReport is the outcome of a decision, to be reported.
type OutcomeReport struct {
	// Outcome is fraud, chargeback, passed-step-up, false-alarm or other.
	Outcome string `json:"outcome"`
	// At is the time when it became known (RFC 3339); empty means the time of the report.
	At string `json:"at,omitempty"`
}

// ReportedOutcome is the stored outcome of a decision.
type ReportedOutcome struct {
	RequestID string `json:"requestId"`
	Outcome   string `json:"outcome"`
	At        string `json:"at"`
}

// Health is the answer of a running server; the key is not checked.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

// Consent is the interface of a Client and of the fake in package consenttest.
type Consent interface {
	IsAllowed(ctx context.Context, check Check) (bool, error)
	CanProcess(ctx context.Context, check Check) (Decision, error)
	CanProcessMany(ctx context.Context, checks []Check) ([]Decision, error)
	Grant(ctx context.Context, write Write) (WriteResult, error)
	Deny(ctx context.Context, write Write) (WriteResult, error)
	Withdraw(ctx context.Context, write Write) (WriteResult, error)
	State(ctx context.Context, principalID string) (State, error)
	History(ctx context.Context, principalID string, page Page) (History, error)
	HistoryAll(ctx context.Context, principalID string, page Page) func(yield func(Event, error) bool)
	CreateSession(ctx context.Context, principalID string) (Session, error)
	Join(ctx context.Context, session string, browser BrowserPrincipal) (Join, error)
	Link(ctx context.Context, session, token string) (Link, error)
	Erase(ctx context.Context, session string) (ErasureReceipt, error)
	Purposes(ctx context.Context) ([]Purpose, error)
	SavePurposes(ctx context.Context, purposes []PurposeDefinition, material *bool) (SavedPurposes, error)
	Policies(ctx context.Context) ([]Policy, error)
	PublishPolicy(ctx context.Context, text string, material bool) (PublishedPolicy, error)
	Checkpoint(ctx context.Context) (string, error)
	VKey(ctx context.Context) (string, error)
	ExportLog(ctx context.Context) (string, error)
	Receipt(ctx context.Context, seq int64) (Receipt, error)
	Proof(ctx context.Context, seq int64) (string, error)
	Decision(ctx context.Context, requestID string) (Verdict, error)
	Checkout(ctx context.Context, requestID string, options CheckoutOptions) (Advice, error)
	Agent(ctx context.Context, r *http.Request, options AgentOptions) (AgentAnswer, error)
	ReportOutcome(ctx context.Context, requestID string, report OutcomeReport) (ReportedOutcome, error)
	ReadState(ctx context.Context, cookieHeader string) (*VisitorState, error)
	CurrentState(ctx context.Context, cookieHeader string) (CurrentState, error)
	May(ctx context.Context, r *http.Request, ask Ask) (Permissions, error)
	Ping(ctx context.Context) (Health, error)
	Close() error
}
