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

func TestACancelledContextAsksNothing(t *testing.T) {
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := consenttest.New().IsAllowed(cancelled, check); err != context.Canceled {
		t.Error(err)
	}
}

func TestRemembersItsCalls(t *testing.T) {
	fake := consenttest.New()
	fake.SetDecision("req_1", consent.Verdict{})
	must[consent.Verdict](t)(fake.Decision(ctx, "req_1"))
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
