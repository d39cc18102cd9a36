package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/consenttest"
)

func TestPage(t *testing.T) {
	now := time.Unix(1_767_225_600, 0)
	fake := consenttest.New()
	fake.SetNow(func() time.Time { return now })
	if _, err := fake.Grant(context.Background(), consent.Write{PrincipalID: "u-1", Purposes: []string{"ads"}}); err != nil {
		t.Fatal(err)
	}
	cookie := fake.CookieFor("u-1")
	server := httptest.NewServer(Shop(fake, func(r *http.Request) string { return r.Header.Get("X-User") }))
	defer server.Close()
	ask := func(hasAd, setsCookie bool, headers ...string) {
		t.Helper()
		request, err := http.NewRequest(http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var page strings.Builder
		if err := response.Write(&page); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(page.String(), "Seen elsewhere") != hasAd {
			t.Errorf("%v: %s", headers, page.String())
		}
		if strings.Contains(page.String(), "Set-Cookie: gpd_consent=ey") != setsCookie {
			t.Errorf("%v: %s", headers, page.String())
		}
	}
	ask(false, false)
	ask(true, false, "Cookie", cookie)
	ask(false, false, "Cookie", cookie, "Sec-GPC", "1")
	ask(true, false, "X-User", "u-1")
	ask(false, false, "X-User", "u-2", "Cookie", cookie)
	now = now.Add(time.Hour)
	ask(true, true, "Cookie", cookie)
}

func TestReadmeHasThisPage(t *testing.T) {
	code, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(code), "\treturn func(w http.ResponseWriter, r *http.Request) {\n")
	body, _, _ := strings.Cut(rest, "\n\t}\n}")
	body = strings.TrimPrefix(strings.ReplaceAll("\n"+body, "\n\t\t", "\n"), "\n")
	if !strings.Contains(string(readme), "```go\n"+body+"\n```") {
		t.Errorf("the README does not show\n%s", body)
	}
}
