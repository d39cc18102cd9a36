// A middleware for net/http: requests that reach the handlers behind it may be processed.
// GPD_CONSENT_URL=… GPD_CONSENT_KEY=… go run ./examples/middleware
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"

	consent "gpd.dev/consent-go"
)

// Decider is the part of a client that the middleware needs, so that a test can pass the fake.
type Decider interface {
	CanProcess(ctx context.Context, check consent.Check) (consent.Decision, error)
}

func refuse(w http.ResponseWriter, status int, body map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may have closed the connection.
	_ = json.NewEncoder(w).Encode(body)
}

// RequireConsent lets a request pass if the person granted the purpose; otherwise 403, or 401 if nobody is signed in.
func RequireConsent(decider Decider, purpose string, principalOf func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		principalID := principalOf(r)
		if principalID == "" {
			refuse(w, http.StatusUnauthorized, map[string]string{"error": "sign-in-needed"})
			return
		}
		decision, err := decider.CanProcess(r.Context(), consent.Check{PrincipalID: principalID, Purpose: purpose})
		switch {
		case err != nil && r.Context().Err() != nil:
			// The client has closed the connection: no answer is needed.
		case err != nil:
			// An error, such as for a wrong key: nothing is processed either.
			log.Print(err)
			refuse(w, http.StatusInternalServerError, map[string]string{"error": "internal"})
		case !decision.Allowed:
			refuse(w, http.StatusForbidden, map[string]string{
				"error": "consent-needed", "purpose": purpose, "reason": decision.Reason,
			})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func main() {
	client, err := consent.FromEnv(consent.Options{})
	if err != nil {
		log.Fatal(err)
	}
	offers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"offers":["for you"]}`))
	})
	// This header takes the place of your session, which knows the person.
	principalOf := func(r *http.Request) string { return r.Header.Get("X-User") }
	http.Handle("/offers", RequireConsent(client, "newsletter", principalOf, offers))
	log.Print("http://127.0.0.1:3000/offers")
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}
