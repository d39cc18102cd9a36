package consenttest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

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

var choiceOf = map[string]string{"grant": "granted", "deny": "denied", "withdraw": "withdrawn"}

type event struct {
	principalID   string
	purpose       string
	choice        string
	policyVersion int64
	gpc           bool
	overGPC       bool
	ref           consent.ProofRef
	time          time.Time
	expires       *time.Time
}

type answered struct {
	request string
	result  consent.WriteResult
}

var purposeID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

type fakeLog struct {
	now      func() time.Time
	events   []event
	entries  int64
	ttlDays  map[string]float64
	accounts map[string]string
	erased   map[string]bool
	// purposes are the only ones; nil: every purpose is known.
	purposes []string
	// policyVersion is the newest; grants under an older one than material are outdated.
	policyVersion, material int64
	policies                map[string]GPCPolicy
	// signals has the principals with a GPC signal, and the purposes that each granted without it since.
	signals map[string]map[string]bool
	answers map[string]answered
}

func newFakeLog(now func() time.Time) fakeLog {
	return fakeLog{
		now: now, ttlDays: map[string]float64{}, accounts: map[string]string{}, erased: map[string]bool{},
		policies: map[string]GPCPolicy{}, signals: map[string]map[string]bool{}, answers: map[string]answered{},
	}
}

// refusal is an answer of another status than 2xx.
type refusal struct {
	status int
	code   string
}

func (r refusal) Error() string { return r.code }

func (l *fakeLog) timeText(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

func (l *fakeLog) personOf(principalID string) string {
	if account, ok := l.accounts[principalID]; ok {
		return account
	}
	return principalID
}

func (l *fakeLog) erase(principalID string) int {
	person := l.personOf(principalID)
	kept := []event{}
	for _, one := range l.events {
		if l.personOf(one.principalID) != person {
			kept = append(kept, one)
		}
	}
	count := len(l.events) - len(kept)
	l.events = kept
	delete(l.signals, person)
	l.erased[person] = true
	return count
}

func (l *fakeLog) nextRef() consent.ProofRef {
	l.entries++
	digest := sha256.Sum256([]byte(fmt.Sprint("fake entry ", l.entries)))
	return consent.ProofRef{Seq: l.entries, Hash: hex.EncodeToString(digest[:])}
}

func (l *fakeLog) isKnown(purpose string) bool {
	for _, one := range l.purposes {
		if one == purpose {
			return true
		}
	}
	return l.purposes == nil
}

func (l *fakeLog) write(method string, write consent.Write) (consent.WriteResult, error) {
	if err := l.check(write); err != nil {
		return consent.WriteResult{}, err
	}
	body, _ := json.Marshal(write)
	request := method + string(body)
	if known, ok := l.answers[write.IdempotencyKey]; ok {
		if known.request != request {
			return consent.WriteResult{}, refusal{http.StatusConflict, "idempotency-conflict"}
		}
		return known.result, nil
	}
	l.applySignal(method, write)
	if method == "grant" {
		delete(l.erased, l.personOf(write.PrincipalID))
	}
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

func (l *fakeLog) check(write consent.Write) error {
	seen := map[string]bool{}
	for _, purpose := range write.Purposes {
		if seen[purpose] || !purposeID.MatchString(purpose) || len(write.Purposes) > 50 {
			return refusal{http.StatusBadRequest, "invalid-request"}
		}
		seen[purpose] = true
	}
	for purpose := range seen {
		if !l.isKnown(purpose) {
			return refusal{http.StatusUnprocessableEntity, "unknown-purpose"}
		}
	}
	switch {
	case !write.OverGPC:
		return nil
	case write.GPC == nil || !*write.GPC || len(write.Purposes) != 1:
		return refusal{http.StatusBadRequest, "invalid-request"}
	case l.policies[write.Purposes[0]] != GPCAsk:
		return refusal{http.StatusUnprocessableEntity, "unknown-purpose"}
	}
	return nil
}

func (l *fakeLog) applySignal(method string, write consent.Write) {
	if write.GPC == nil {
		return
	}
	person := l.personOf(write.PrincipalID)
	except := l.signals[person]
	switch {
	case *write.GPC:
		l.signals[person] = map[string]bool{}
	case method == "grant" && except != nil:
		for _, purpose := range write.Purposes {
			except[purpose] = true
		}
	}
}

func (l *fakeLog) entryOf(method, purpose string, write consent.Write) event {
	one := event{
		principalID: write.PrincipalID, purpose: purpose, choice: choiceOf[method],
		gpc: l.isOptedOut(write.PrincipalID, purpose), overGPC: write.OverGPC,
		ref: l.nextRef(), time: l.now(), policyVersion: l.policyVersion,
	}
	if days, ok := l.ttlDays[purpose]; ok && method == "grant" {
		expires := one.time.Add(time.Duration(days * float64(24*time.Hour)))
		one.expires = &expires
	}
	if method == "deny" && write.GPC != nil && *write.GPC && l.policies[purpose] != GPCIgnore {
		one.choice = "gpc-opt-out"
	}
	if write.PolicyVersion != nil {
		one.policyVersion = *write.PolicyVersion
	}
	return one
}

func (l *fakeLog) isOptedOut(principalID, purpose string) bool {
	except, isSignalled := l.signals[l.personOf(principalID)]
	return isSignalled && !except[purpose]
}

func (l *fakeLog) last(principalID, purpose string) *event {
	for i := len(l.events) - 1; i >= 0; i-- {
		if one := &l.events[i]; l.personOf(one.principalID) == l.personOf(principalID) && one.purpose == purpose {
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
		if l.personOf(one.principalID) != l.personOf(principalID) {
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
	case !l.isKnown(purpose):
		return "unknown-purpose"
	case last == nil && l.erased[l.personOf(principalID)]:
		return "erased"
	case l.isOptedOut(principalID, purpose) && l.isOverruledByGPC(purpose, last):
		return "gpc-opt-out"
	case last == nil || last.choice == "gpc-opt-out":
		return "never-asked"
	case last.choice == "granted" && last.expires != nil && !l.now().Before(*last.expires):
		return "expired"
	case last.choice == "granted" && last.policyVersion < l.material:
		return "policy-outdated"
	}
	return last.choice
}

func (l *fakeLog) decide(principalID, purpose string) consent.Decision {
	last := l.last(principalID, purpose)
	reason := l.reasonOf(principalID, purpose, last)
	ref, policyVersion := genesis, l.policyVersion
	var expiresAt *string
	switch {
	case last != nil && reason != "never-asked":
		ref, policyVersion, expiresAt = last.ref, last.policyVersion, l.expiryOf(last)
	case len(l.events) > 0:
		ref = l.events[len(l.events)-1].ref
	}
	return consent.Decision{
		Allowed: reason == "granted", Reason: reason, Proof: &ref, PolicyVersion: &policyVersion, Given: "unknown", ExpiresAt: expiresAt,
	}
}

func (l *fakeLog) expiryOf(one *event) *string {
	if one.expires == nil {
		return nil
	}
	text := l.timeText(*one.expires)
	return &text
}

func (l *fakeLog) state(principalID string) consent.State {
	state := consent.State{PrincipalID: principalID, Purposes: []consent.PurposeState{}}
	seenPurposes := map[string]bool{}
	for _, one := range l.events {
		if l.personOf(one.principalID) != l.personOf(principalID) || seenPurposes[one.purpose] {
			continue
		}
		seenPurposes[one.purpose] = true
		last := l.last(principalID, one.purpose)
		choice, at := last.choice, l.timeText(last.time)
		state.Purposes = append(state.Purposes, consent.PurposeState{
			Purpose: one.purpose, Choice: &choice, At: &at, Decision: l.decide(principalID, one.purpose),
		})
	}
	return state
}

// history returns the events before the cursor, newest first.
func (l *fakeLog) history(principalID, cursor string, limit int) (consent.History, error) {
	before := l.entries + 1
	if cursor != "" {
		var err error
		if before, err = strconv.ParseInt(cursor, 10, 64); err != nil || before < 0 {
			return consent.History{}, refusal{http.StatusBadRequest, "invalid-request"}
		}
	}
	if limit < 1 || limit > 200 {
		return consent.History{}, refusal{http.StatusBadRequest, "invalid-request"}
	}
	history := consent.History{PrincipalID: principalID, Events: []consent.Event{}}
	for i := len(l.events) - 1; i >= 0; i-- {
		one := &l.events[i]
		if l.personOf(one.principalID) != l.personOf(principalID) || one.ref.Seq >= before {
			continue
		}
		if len(history.Events) == limit {
			cursor := strconv.FormatInt(history.Events[limit-1].Seq, 10)
			history.NextCursor = &cursor
			break
		}
		version := one.policyVersion
		history.Events = append(history.Events, consent.Event{
			Seq: one.ref.Seq, Type: "consent." + one.choice, Purpose: one.purpose, Time: l.timeText(one.time), ExpiresAt: l.expiryOf(one),
			PolicyVersion: &version, GPC: one.gpc, Source: "backend", OverGPC: one.overGPC,
		})
	}
	return history, nil
}
