package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/consenttest"
)

func TestGuardsAHandler(t *testing.T) {
	fake := consenttest.New()
	offers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	principalOf := func(r *http.Request) string { return r.Header.Get("X-User") }
	guarded := RequireConsent(fake, "newsletter", principalOf, offers)
	ask := func(user string) int {
		request := httptest.NewRequest(http.MethodGet, "/offers", nil)
		request.Header.Set("X-User", user)
		recorder := httptest.NewRecorder()
		guarded.ServeHTTP(recorder, request)
		return recorder.Code
	}
	expect := func(user string, status int) {
		t.Helper()
		if got := ask(user); got != status {
			t.Errorf("%q: %d, expected was %d", user, got, status)
		}
	}
	expect("", http.StatusUnauthorized)
	expect("u-1", http.StatusForbidden)
	write := consent.Write{PrincipalID: "u-1", Purposes: []string{"newsletter"}}
	if _, err := fake.Grant(context.Background(), write); err != nil {
		t.Fatal(err)
	}
	expect("u-1", http.StatusOK)
	fake.SetUnavailable(true)
	expect("u-1", http.StatusForbidden)
	fake.Close()
	expect("u-1", http.StatusInternalServerError)
}
