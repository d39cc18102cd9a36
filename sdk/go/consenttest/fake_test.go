package consenttest_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/consenttest"
)

var (
	ctx   = context.Background()
	check = consent.Check{PrincipalID: "u-1", Purpose: "newsletter"}
	write = consent.Write{PrincipalID: "u-1", Purposes: []string{"newsletter"}}
)

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func kindOf(err error) consent.Kind {
	var failure *consent.Error
	if errors.As(err, &failure) {
		return failure.Kind
	}
	return ""
}

func TestAllowsNothingThatWasNotGranted(t *testing.T) {
	fake := consenttest.New()
	if must[bool](t)(fake.IsAllowed(ctx, check)) {
		t.Error("an empty fake allows")
	}
	if decision := must[consent.Decision](t)(fake.CanProcess(ctx, check)); decision.Reason != "never-asked" {
		t.Error(decision.Reason)
	}
	must[consent.WriteResult](t)(fake.Grant(ctx, write))
	if !must[bool](t)(fake.IsAllowed(ctx, check)) {
		t.Error("what was granted is denied")
	}
	for _, other := range []consent.Check{{PrincipalID: "u-2", Purpose: "newsletter"}, {PrincipalID: "u-1", Purpose: "support"}} {
		if must[bool](t)(fake.IsAllowed(ctx, other)) {
			t.Errorf("%+v is allowed", other)
		}
	}
}

func TestFollowsTheLastWord(t *testing.T) {
	fake := consenttest.New()
	must[consent.WriteResult](t)(fake.Grant(ctx, write))
	result := must[consent.WriteResult](t)(fake.Withdraw(ctx, write))
	decision := must[consent.Decision](t)(fake.CanProcess(ctx, check))
	if decision.Reason != "withdrawn" || *decision.Proof != result.ProofRef || len(result.Hash) != 64 {
		t.Error(decision, result)
	}
	must[consent.WriteResult](t)(fake.Deny(ctx, write))
	many := must[[]consent.Decision](t)(fake.CanProcessMany(ctx, []consent.Check{check}))
	if many[0].Allowed || many[0].Reason != "denied" {
		t.Error(many)
	}
	state := must[consent.State](t)(fake.State(ctx, "u-1"))
	if len(state.Purposes) != 1 || *state.Purposes[0].Choice != "denied" {
		t.Error(state)
	}
	page := must[consent.History](t)(fake.History(ctx, "u-1", consent.Page{Limit: 2}))
	if page.Events[0].Type != "consent.denied" || page.Events[1].Type != "consent.withdrawn" {
		t.Error(page)
	}
	rest := must[consent.History](t)(fake.History(ctx, "u-1", consent.Page{Limit: 2, Cursor: *page.NextCursor}))
	if len(rest.Events) != 1 || rest.Events[0].Type != "consent.granted" || rest.NextCursor != nil {
		t.Error(rest)
	}
}

func TestFailsAsAServerThatIsGone(t *testing.T) {
	fake := consenttest.New()
	must[consent.WriteResult](t)(fake.Grant(ctx, write))
	fake.SetUnavailable(true)
	decision := must[consent.Decision](t)(fake.CanProcess(ctx, check))
	if decision.Allowed || decision.Reason != "unavailable" || decision.Proof != nil || kindOf(decision.Err) != consent.KindNetwork {
		t.Error(decision)
	}
	if _, err := fake.Grant(ctx, write); kindOf(err) != consent.KindNetwork {
		t.Error(err)
	}
	fake.SetUnavailable(false)
	if !must[bool](t)(fake.IsAllowed(ctx, check)) {
		t.Error("the grant is forgotten")
	}
	strict := consenttest.NewWith(consent.RaiseUnavailable)
	strict.SetUnavailable(true)
	if _, err := strict.IsAllowed(ctx, check); kindOf(err) != consent.KindNetwork {
		t.Error(err)
	}
}

func TestRefusesWhatTheClientRefuses(t *testing.T) {
	fake := consenttest.New()
	if _, err := fake.IsAllowed(ctx, consent.Check{Purpose: "a"}); kindOf(err) != consent.KindInvalidRequest {
		t.Error(err)
	}
	if _, err := fake.Receipt(ctx, 1); kindOf(err) != consent.KindNotFound {
		t.Error(err)
	}
	if _, err := fake.Proof(ctx, 1); kindOf(err) != consent.KindNotFound {
		t.Error(err)
	}
	if _, err := fake.Decision(ctx, "req_1"); kindOf(err) != consent.KindNotFound {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := fake.IsAllowed(cancelled, check); err != context.Canceled {
		t.Error(err)
	}
	fake.Close()
	if _, err := fake.Ping(ctx); kindOf(err) != consent.KindConfig {
		t.Error(err)
	}
}

func TestStoresAnOutcomeOnceOfADecisionThatItWasGiven(t *testing.T) {
	fake := consenttest.New()
	fraud := consent.OutcomeReport{Outcome: "fraud"}
	if _, err := fake.ReportOutcome(ctx, "req_1", fraud); kindOf(err) != consent.KindNotFound {
		t.Error(err)
	}
	fake.SetDecision("req_1", consent.Verdict{})
	stored := consent.ReportedOutcome{RequestID: "req_1", Outcome: "fraud", At: "2026-05-04T10:00:00.000Z"}
	for _, report := range []consent.OutcomeReport{{Outcome: "fraud", At: stored.At}, fraud} {
		if got := must[consent.ReportedOutcome](t)(fake.ReportOutcome(ctx, "req_1", report)); got != stored {
			t.Error(got)
		}
	}
	other := consent.OutcomeReport{Outcome: "fraud", At: "2026"}
	for _, report := range []consent.OutcomeReport{{Outcome: "other"}, other} {
		_, err := fake.ReportOutcome(ctx, "req_1", report)
		var failure *consent.Error
		if !errors.As(err, &failure) || failure.Code != "idempotency-conflict" || failure.Status != 409 {
			t.Error(report, err)
		}
	}
	if _, err := fake.ReportOutcome(ctx, "req_1", consent.OutcomeReport{}); kindOf(err) != consent.KindInvalidRequest {
		t.Error(err)
	}
	calls := fake.Calls()
	last := consenttest.Call{Method: "ReportOutcome", Args: []any{"req_1", other}}
	if !reflect.DeepEqual(calls[len(calls)-1], last) {
		t.Error(calls)
	}
	fake.SetUnavailable(true)
	if _, err := fake.ReportOutcome(ctx, "req_1", fraud); kindOf(err) != consent.KindNetwork {
		t.Error(err)
	}
}

func TestAnswersVerdictsAndRemembersCalls(t *testing.T) {
	fake := consenttest.New()
	fake.SetDecision("req_1", consent.Verdict{Class: "undeclared_automation"})
	verdict := must[consent.Verdict](t)(fake.Decision(ctx, "req_1"))
	if verdict.RequestID != "req_1" || verdict.Class != "undeclared_automation" {
		t.Error(verdict)
	}
	must[bool](t)(fake.IsAllowed(ctx, check))
	must[consent.Session](t)(fake.Sessions.Create(ctx, "u-1"))
	expected := []consenttest.Call{
		{Method: "Decision", Args: []any{"req_1"}},
		{Method: "IsAllowed", Args: []any{check}},
		{Method: "Sessions.Create", Args: []any{"u-1"}},
	}
	if !reflect.DeepEqual(fake.Calls(), expected) {
		t.Error(fake.Calls())
	}
}
