package consenttest

import (
	"context"
	"fmt"
	"net/http"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/internal/rules"
)

func (f *Fake) IsAllowed(ctx context.Context, check consent.Check) (bool, error) {
	decision, err := f.check(ctx, "IsAllowed", check)
	return decision.Allowed, err
}

func (f *Fake) CanProcess(ctx context.Context, check consent.Check) (consent.Decision, error) {
	return f.check(ctx, "CanProcess", check)
}

func (f *Fake) CanProcessMany(ctx context.Context, checks []consent.Check) ([]consent.Decision, error) {
	const name = "CanProcessMany"
	if err := f.begin(ctx, name, batchHint(checks), checks); err != nil {
		return nil, err
	}
	defer f.mutex.Unlock()
	decisions := make([]consent.Decision, len(checks))
	for i, check := range checks {
		var err error
		if decisions[i], err = f.decide(name, check); err != nil {
			return nil, err
		}
	}
	return decisions, nil
}

func batchHint(checks []consent.Check) string {
	batch := make([]rules.Asked, len(checks))
	for i, check := range checks {
		batch[i] = rules.Asked{PrincipalID: check.PrincipalID, Purpose: check.Purpose, MinSeq: check.MinSeq}
	}
	return rules.Batch(batch)
}

func (f *Fake) Grant(ctx context.Context, write consent.Write) (consent.WriteResult, error) {
	return f.write(ctx, "Grant", write)
}

func (f *Fake) Deny(ctx context.Context, write consent.Write) (consent.WriteResult, error) {
	return f.write(ctx, "Deny", write)
}

func (f *Fake) Withdraw(ctx context.Context, write consent.Write) (consent.WriteResult, error) {
	return f.write(ctx, "Withdraw", write)
}

func (f *Fake) State(ctx context.Context, principalID string) (consent.State, error) {
	if err := f.reach(ctx, "State", rules.Principal(principalID), principalID); err != nil {
		return consent.State{}, err
	}
	defer f.mutex.Unlock()
	return f.log.state(principalID), nil
}

func (f *Fake) History(ctx context.Context, principalID string, page consent.Page) (consent.History, error) {
	if err := f.reach(ctx, "History", rules.Principal(principalID), principalID, page); err != nil {
		return consent.History{}, err
	}
	defer f.mutex.Unlock()
	return f.log.history(principalID, page), nil
}

// Sessions creates tokens of a fake.
type Sessions struct{ fake *Fake }

func (s *Sessions) Create(ctx context.Context, principalID string) (consent.Session, error) {
	if err := s.fake.reach(ctx, "Sessions.Create", rules.Principal(principalID), principalID); err != nil {
		return consent.Session{}, err
	}
	defer s.fake.mutex.Unlock()
	token := fmt.Sprint("gpd_ps_fake", len(s.fake.calls))
	return consent.Session{Token: token, PrincipalID: principalID, ExpiresAt: at}, nil
}

// Receipt always fails with not-found, because the fake has no log.
func (f *Fake) Receipt(ctx context.Context, seq int64) (consent.Receipt, error) {
	if err := f.reach(ctx, "Receipt", rules.Seq(seq), seq); err != nil {
		return consent.Receipt{}, err
	}
	defer f.mutex.Unlock()
	return consent.Receipt{}, notFound("Receipt", "not-found")
}

// Proof always fails with not-found, because the fake has no log.
func (f *Fake) Proof(ctx context.Context, seq int64) (string, error) {
	if err := f.reach(ctx, "Proof", rules.Seq(seq), seq); err != nil {
		return "", err
	}
	defer f.mutex.Unlock()
	return "", notFound("Proof", "not-found")
}

// Decision returns the verdict of SetDecision, or fails with not-found.
func (f *Fake) Decision(ctx context.Context, requestID string) (consent.Verdict, error) {
	if err := f.reach(ctx, "Decision", rules.RequestID(requestID), requestID); err != nil {
		return consent.Verdict{}, err
	}
	defer f.mutex.Unlock()
	if verdict, ok := f.verdicts[requestID]; ok {
		return verdict, nil
	}
	return consent.Verdict{}, notFound("Decision", "no-such-decision")
}

// ReportOutcome stores the outcome of a decision of SetDecision; times At are compared as texts.
func (f *Fake) ReportOutcome(ctx context.Context, requestID string, report consent.OutcomeReport) (consent.ReportedOutcome, error) {
	const name = "ReportOutcome"
	if err := f.reach(ctx, name, rules.Report(requestID, report.Outcome), requestID, report); err != nil {
		return consent.ReportedOutcome{}, err
	}
	defer f.mutex.Unlock()
	if _, ok := f.verdicts[requestID]; !ok {
		return consent.ReportedOutcome{}, notFound(name, "no-such-decision")
	}
	stored, ok := f.outcomes[requestID]
	if !ok {
		stored = consent.ReportedOutcome{RequestID: requestID, Outcome: report.Outcome, At: report.At}
		if report.At == "" {
			stored.At = at
		}
		f.outcomes[requestID] = stored
	}
	if stored.Outcome != report.Outcome || (report.At != "" && stored.At != report.At) {
		return consent.ReportedOutcome{}, refusal(name, consent.KindConflict, "idempotency-conflict", http.StatusConflict)
	}
	return stored, nil
}

func (f *Fake) Ping(ctx context.Context) (consent.Health, error) {
	if err := f.reach(ctx, "Ping", ""); err != nil {
		return consent.Health{}, err
	}
	defer f.mutex.Unlock()
	return consent.Health{Status: "ok", Version: "fake " + consent.Version}, nil
}

func (f *Fake) Close() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.isClosed = true
	return nil
}
