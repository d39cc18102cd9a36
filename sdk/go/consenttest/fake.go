// Package consenttest has a fake of the client for your tests. It works in memory and allows only what was granted.
package consenttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/internal/rules"
	"gpd.dev/consent-go/internal/visitor"
)

// Call is a recorded call.
type Call struct {
	// Method is the Go name, such as "IsAllowed".
	Method string
	// Args are the arguments after the context.
	Args []any
}

// Fake replaces a *consent.Client in tests. It is safe for many goroutines.
type Fake struct {
	Sessions *Sessions

	visitors *visitor.Visitors
	signer   *signer

	mutex         sync.Mutex
	now           func() time.Time
	onUnavailable consent.OnUnavailable
	calls         []Call
	log           fakeLog
	verdicts      map[string]consent.Verdict
	outcomes      map[string]consent.ReportedOutcome
	isUnavailable bool
	isClosed      bool
}

var _ consent.Consent = (*Fake)(nil)

// A fixed time, so that no test depends on the date.
const at = "2026-01-01T00:00:00.000Z"

var genesis = consent.ProofRef{Hash: hex.EncodeToString(make([]byte, sha256.Size))}

// New returns a fake that denies a check which cannot be decided.
func New() *Fake { return NewWith(consent.DenyUnavailable) }

// NewWith sets the result of a check that cannot be decided.
func NewWith(onUnavailable consent.OnUnavailable) *Fake {
	fake := &Fake{onUnavailable: onUnavailable, now: time.Now, log: newFakeLog(), verdicts: map[string]consent.Verdict{}}
	fake.outcomes = map[string]consent.ReportedOutcome{}
	fake.Sessions = &Sessions{fake}
	fake.signer = newSigner()
	fake.visitors = newVisitors(fake)
	return fake
}

// Calls returns all calls, in order.
func (f *Fake) Calls() []Call {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return append([]Call(nil), f.calls...)
}

// SetUnavailable makes everything answer as if the server were gone, or as before again.
func (f *Fake) SetUnavailable(unavailable bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.isUnavailable = unavailable
}

// SetGPCPolicy sets the effect of Global Privacy Control on a purpose; GPCOptOut if it was not set.
func (f *Fake) SetGPCPolicy(purpose string, policy GPCPolicy) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.log.policies[purpose] = policy
}

// SetCookieDomain sets the domain of cookies, as consent.Options.CookieDomain does.
func (f *Fake) SetCookieDomain(domain string) { f.visitors.CookieDomain = domain }

// SetNow sets the clock for the age of cookies; time.Now if it was not set.
func (f *Fake) SetNow(now func() time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.now = now
}

// SetDecision sets the verdict that Decision returns for this request.
func (f *Fake) SetDecision(requestID string, verdict consent.Verdict) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	verdict.RequestID = requestID
	f.verdicts[requestID] = verdict
}

func failure(method string, kind consent.Kind) *consent.Error {
	return &consent.Error{Method: method, Kind: kind, Code: string(kind)}
}

// begin refuses calls as the client does. If it returns nil, the caller holds the mutex.
func (f *Fake) begin(ctx context.Context, method, hint string, args ...any) error {
	if hint != "" {
		err := failure(method, consent.KindInvalidRequest)
		err.Hint = hint
		return err
	}
	f.mutex.Lock()
	var err error
	switch {
	case f.isClosed:
		err = &consent.Error{Method: method, Kind: consent.KindConfig, Code: "closed"}
	case ctx.Err() == context.Canceled:
		err = context.Canceled
	default:
		f.calls = append(f.calls, Call{method, args})
		return nil
	}
	f.mutex.Unlock()
	return err
}

// reach is begin for all methods but checks: they fail when the server is down.
func (f *Fake) reach(ctx context.Context, method, hint string, args ...any) error {
	if err := f.begin(ctx, method, hint, args...); err != nil {
		return err
	}
	if f.isUnavailable {
		f.mutex.Unlock()
		return failure(method, consent.KindNetwork)
	}
	return nil
}

func (f *Fake) decide(method string, check consent.Check) (consent.Decision, error) {
	if !f.isUnavailable {
		return f.log.decide(check.PrincipalID, check.Purpose), nil
	}
	err := failure(method, consent.KindNetwork)
	if f.onUnavailable == consent.RaiseUnavailable {
		return consent.Decision{}, err
	}
	return consent.Decision{Reason: "unavailable", Given: "unknown", Err: err}, nil
}

func (f *Fake) check(ctx context.Context, method string, check consent.Check) (consent.Decision, error) {
	hint := rules.Check(check.PrincipalID, check.Purpose, check.MinSeq)
	if err := f.begin(ctx, method, hint, check); err != nil {
		return consent.Decision{}, err
	}
	defer f.mutex.Unlock()
	return f.decide(method, check)
}

func (f *Fake) write(ctx context.Context, method string, write consent.Write) (consent.WriteResult, error) {
	hint := rules.Write(write.PrincipalID, write.Purposes, write.IdempotencyKey)
	if err := f.reach(ctx, method, hint, write); err != nil {
		return consent.WriteResult{}, err
	}
	defer f.mutex.Unlock()
	return f.log.write(method, write)
}

func notFound(method, code string) error {
	return refusal(method, consent.KindNotFound, code, http.StatusNotFound)
}
