package consenttest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	consent "gpd.dev/consent-go"
)

// Choices, Global Privacy Control and Idempotency-Keys of a fake, by the rules of the server.

// GPCPolicy is the effect of Global Privacy Control on a purpose.
type GPCPolicy string

const (
	// GPCOptOut is the policy of a purpose for which none was set.
	GPCOptOut GPCPolicy = "opt-out"
	GPCAsk    GPCPolicy = "ask"
	GPCIgnore GPCPolicy = "ignore"
)

var choiceOf = map[string]string{"Grant": "granted", "Deny": "denied", "Withdraw": "withdrawn"}

type event struct {
	principalID   string
	purpose       string
	choice        string
	policyVersion int64
	gpc           bool
	overGPC       bool
	ref           consent.ProofRef
}

type answered struct {
	request string
	result  consent.WriteResult
}

type fakeLog struct {
	events   []event
	policies map[string]GPCPolicy
	// signals has the principals with a GPC signal, and the purposes that each granted without it since.
	signals map[string]map[string]bool
	answers map[string]answered
}

func newFakeLog() fakeLog {
	return fakeLog{
		policies: map[string]GPCPolicy{}, signals: map[string]map[string]bool{}, answers: map[string]answered{},
	}
}

func refusal(method string, kind consent.Kind, code string, status int) *consent.Error {
	return &consent.Error{Method: method, Kind: kind, Code: code, Status: status}
}

func (l *fakeLog) write(method string, write consent.Write) (consent.WriteResult, error) {
	if err := l.checkOverGPC(method, write); err != nil {
		return consent.WriteResult{}, err
	}
	body, _ := json.Marshal(write)
	request := method + string(body)
	if known, ok := l.answers[write.IdempotencyKey]; ok {
		if known.request != request {
			return consent.WriteResult{}, refusal(method, consent.KindConflict, "idempotency-conflict", http.StatusConflict)
		}
		return known.result, nil
	}
	l.applySignal(method, write)
	result := consent.WriteResult{}
	for _, purpose := range write.Purposes {
		one := l.entryOf(method, purpose, write)
		l.events = append(l.events, one)
		result.Entries = append(result.Entries, consent.WrittenEntry{Purpose: purpose, ProofRef: one.ref})
		result.ProofRef = one.ref
	}
	if write.IdempotencyKey != "" {
		l.answers[write.IdempotencyKey] = answered{request, result}
	}
	return result, nil
}

func (l *fakeLog) checkOverGPC(method string, write consent.Write) error {
	switch {
	case !write.OverGPC:
		return nil
	case write.GPC == nil || !*write.GPC || len(write.Purposes) != 1:
		return refusal(method, consent.KindInvalidRequest, "invalid-request", http.StatusBadRequest)
	case l.policies[write.Purposes[0]] != GPCAsk:
		return refusal(method, consent.KindInvalidRequest, "unknown-purpose", http.StatusUnprocessableEntity)
	}
	return nil
}

func (l *fakeLog) applySignal(method string, write consent.Write) {
	if write.GPC == nil {
		return
	}
	except := l.signals[write.PrincipalID]
	switch {
	case *write.GPC:
		l.signals[write.PrincipalID] = map[string]bool{}
	case method == "Grant" && except != nil:
		for _, purpose := range write.Purposes {
			except[purpose] = true
		}
	}
}

func (l *fakeLog) entryOf(method, purpose string, write consent.Write) event {
	seq := int64(len(l.events) + 1)
	digest := sha256.Sum256([]byte(fmt.Sprint("fake entry ", seq)))
	one := event{
		principalID: write.PrincipalID, purpose: purpose, choice: choiceOf[method],
		gpc: l.isOptedOut(write.PrincipalID, purpose), overGPC: write.OverGPC,
		ref: consent.ProofRef{Seq: seq, Hash: hex.EncodeToString(digest[:])},
	}
	if method == "Deny" && write.GPC != nil && *write.GPC && l.policies[purpose] != GPCIgnore {
		one.choice = "gpc-opt-out"
	}
	if write.PolicyVersion != nil {
		one.policyVersion = *write.PolicyVersion
	}
	return one
}

func (l *fakeLog) isOptedOut(principalID, purpose string) bool {
	except, isSignalled := l.signals[principalID]
	return isSignalled && !except[purpose]
}

func (l *fakeLog) last(principalID, purpose string) *event {
	for i := len(l.events) - 1; i >= 0; i-- {
		if one := &l.events[i]; one.principalID == principalID && one.purpose == purpose {
			return one
		}
	}
	return nil
}

// isOverruledByGPC is true if a signal ends this choice: it heeds the signal, and was not made despite it.
func (l *fakeLog) isOverruledByGPC(purpose string, last *event) bool {
	policy := l.policies[purpose]
	return policy != GPCIgnore && !(policy == GPCAsk && last != nil && last.overGPC)
}

// visitorState returns what this person's cookie says; gpc: under a signal of this request.
func (l *fakeLog) visitorState(principalID string, gpc bool) (purposes []string, seq int64) {
	purposes = []string{}
	seen := map[string]bool{}
	for _, one := range l.events {
		if one.principalID != principalID {
			continue
		}
		seq = one.ref.Seq
		isOverruled := gpc && l.isOverruledByGPC(one.purpose, l.last(principalID, one.purpose))
		if !seen[one.purpose] && !isOverruled && l.decide(principalID, one.purpose).Allowed {
			purposes = append(purposes, one.purpose)
		}
		seen[one.purpose] = true
	}
	return purposes, seq
}

func (l *fakeLog) reasonOf(principalID, purpose string, last *event) string {
	switch {
	case l.isOptedOut(principalID, purpose) && l.isOverruledByGPC(purpose, last):
		return "gpc-opt-out"
	case last == nil || last.choice == "gpc-opt-out":
		return "never-asked"
	}
	return last.choice
}

func (l *fakeLog) decide(principalID, purpose string) consent.Decision {
	last := l.last(principalID, purpose)
	reason := l.reasonOf(principalID, purpose, last)
	ref, policyVersion := genesis, int64(0)
	switch {
	case last != nil && reason != "never-asked":
		ref, policyVersion = last.ref, last.policyVersion
	case len(l.events) > 0:
		ref = l.events[len(l.events)-1].ref
	}
	return consent.Decision{
		Allowed: reason == "granted", Reason: reason, Proof: &ref, PolicyVersion: &policyVersion, Given: "unknown",
	}
}

func (l *fakeLog) state(principalID string) consent.State {
	state := consent.State{PrincipalID: principalID, Purposes: []consent.PurposeState{}}
	seenPurposes := map[string]bool{}
	for _, one := range l.events {
		if one.principalID != principalID || seenPurposes[one.purpose] {
			continue
		}
		seenPurposes[one.purpose] = true
		choice, time := l.last(principalID, one.purpose).choice, at
		state.Purposes = append(state.Purposes, consent.PurposeState{
			Purpose: one.purpose, Choice: &choice, At: &time, Decision: l.decide(principalID, one.purpose),
		})
	}
	return state
}

// history returns the events before the cursor, newest first.
func (l *fakeLog) history(principalID string, page consent.Page) consent.History {
	limit, before := page.Limit, int64(len(l.events)+1)
	if limit == 0 {
		limit = 50
	}
	if page.Cursor != "" {
		before, _ = strconv.ParseInt(page.Cursor, 10, 64)
	}
	history := consent.History{PrincipalID: principalID, Events: []consent.Event{}}
	for i := len(l.events) - 1; i >= 0; i-- {
		one := l.events[i]
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
