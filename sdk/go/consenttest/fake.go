// Package consenttest has a fake of the client for your tests. It works in memory and allows only what was granted.
package consenttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/internal/rules"
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

	mutex         sync.Mutex
	onUnavailable consent.OnUnavailable
	calls         []Call
	events        []event
	verdicts      map[string]consent.Verdict
	outcomes      map[string]consent.ReportedOutcome
	isUnavailable bool
	isClosed      bool
}

type event struct {
	principalID   string
	purpose       string
	choice        string
	policyVersion int64
	gpc           bool
	overGPC       bool
	ref           consent.ProofRef
}

var _ consent.Consent = (*Fake)(nil)

// A fixed time, so that no test depends on the date.
const at = "2026-01-01T00:00:00.000Z"

var genesis = consent.ProofRef{Hash: hex.EncodeToString(make([]byte, sha256.Size))}

// New returns a fake that denies a check which cannot be decided.
func New() *Fake { return NewWith(consent.DenyUnavailable) }

// NewWith sets the result of a check that cannot be decided.
func NewWith(onUnavailable consent.OnUnavailable) *Fake {
	fake := &Fake{onUnavailable: onUnavailable, verdicts: map[string]consent.Verdict{}}
	fake.outcomes = map[string]consent.ReportedOutcome{}
	fake.Sessions = &Sessions{fake}
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

func (f *Fake) last(principalID, purpose string) *event {
	for i := len(f.events) - 1; i >= 0; i-- {
		if one := &f.events[i]; one.principalID == principalID && one.purpose == purpose {
			return one
		}
	}
	return nil
}

func (f *Fake) judge(principalID, purpose string) consent.Decision {
	var policyVersion int64
	decision := consent.Decision{Reason: "never-asked", PolicyVersion: &policyVersion, Given: "unknown"}
	ref := genesis
	if len(f.events) > 0 {
		ref = f.events[len(f.events)-1].ref
	}
	if last := f.last(principalID, purpose); last != nil {
		ref, policyVersion, decision.Reason = last.ref, last.policyVersion, last.choice
	}
	decision.Allowed, decision.Proof = decision.Reason == "granted", &ref
	return decision
}

func (f *Fake) decide(method string, check consent.Check) (consent.Decision, error) {
	if !f.isUnavailable {
		return f.judge(check.PrincipalID, check.Purpose), nil
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

func (f *Fake) write(ctx context.Context, method, choice string, write consent.Write) (consent.WriteResult, error) {
	hint := rules.Write(write.PrincipalID, write.Purposes, write.IdempotencyKey)
	if err := f.reach(ctx, method, hint, write); err != nil {
		return consent.WriteResult{}, err
	}
	defer f.mutex.Unlock()
	result := consent.WriteResult{}
	for _, purpose := range write.Purposes {
		seq := int64(len(f.events) + 1)
		digest := sha256.Sum256([]byte(fmt.Sprint("fake entry ", seq)))
		one := event{principalID: write.PrincipalID, purpose: purpose, choice: choice}
		one.ref = consent.ProofRef{Seq: seq, Hash: hex.EncodeToString(digest[:])}
		if write.PolicyVersion != nil {
			one.policyVersion = *write.PolicyVersion
		}
		one.gpc = write.GPC != nil && *write.GPC
		one.overGPC = write.OverGPC
		f.events = append(f.events, one)
		result.Entries = append(result.Entries, consent.WrittenEntry{Purpose: purpose, ProofRef: one.ref})
		result.ProofRef = one.ref
	}
	return result, nil
}

// historyOf returns the events before the cursor, newest first.
func (f *Fake) historyOf(principalID string, page consent.Page) consent.History {
	limit, before := page.Limit, int64(len(f.events)+1)
	if limit == 0 {
		limit = 50
	}
	if page.Cursor != "" {
		before, _ = strconv.ParseInt(page.Cursor, 10, 64)
	}
	history := consent.History{PrincipalID: principalID, Events: []consent.Event{}}
	for i := len(f.events) - 1; i >= 0; i-- {
		one := f.events[i]
		if one.principalID != principalID || one.ref.Seq >= before {
			continue
		}
		if len(history.Events) == limit {
			cursor := strconv.FormatInt(history.Events[limit-1].Seq, 10)
			history.NextCursor = &cursor
			break
		}
		version := one.policyVersion
		history.Events = append(history.Events, consent.Event{
			Seq: one.ref.Seq, Type: "consent." + one.choice, Purpose: one.purpose, Time: at,
			PolicyVersion: &version, GPC: one.gpc, Source: "backend", OverGPC: one.overGPC,
		})
	}
	return history
}

func notFound(method, code string) error {
	return &consent.Error{Method: method, Kind: consent.KindNotFound, Code: code, Status: http.StatusNotFound}
}
