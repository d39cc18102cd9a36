// A page that is rendered by what its visitor allows.
// GPD_CONSENT_URL=… GPD_CONSENT_KEY=… go run ./examples/page
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	consent "gpd.dev/consent-go"
)

// Asker is the part of a client that the page needs, so that a test can pass the fake.
type Asker interface {
	May(ctx context.Context, r *http.Request, ask consent.Ask) (consent.Permissions, error)
}

// Shop renders the page. principalOf returns who is signed in, or "".
func Shop(client Asker, principalOf func(*http.Request) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		may, err := client.May(r.Context(), r, consent.Ask{
			Purposes: []string{"newsletter", "ads"}, PrincipalID: principalOf(r),
		})
		if err != nil { // such as a wrong key; the page is rendered without what needs consent
			log.Print(err)
		}
		if may.SetCookie != "" {
			w.Header().Add("Set-Cookie", may.SetCookie)
		}
		w.Header().Set("Cache-Control", "private, no-store") // the page is this visitor's
		fmt.Fprint(w, "<h1>Shop</h1>")
		if may.Allows("ads") {
			fmt.Fprint(w, "<p>Seen elsewhere</p>")
		}
	}
}

func main() {
	client, err := consent.FromEnv(consent.Options{CookieDomain: os.Getenv("COOKIE_DOMAIN")})
	if err != nil {
		log.Fatal(err)
	}
	// This header takes the place of your session, which knows the person.
	principalOf := func(r *http.Request) string { return r.Header.Get("X-User") }
	http.Handle("/", Shop(client, principalOf))
	log.Print("http://127.0.0.1:3000/")
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}
