package consenttest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/consenttest"
)

type visit struct {
	fake   *consenttest.Fake
	now    time.Time
	cookie string
}

// newVisit has a person who has granted two purposes, of which one ignores the signal.
func newVisit(t *testing.T) *visit {
	t.Helper()
	v := &visit{fake: consenttest.New(), now: time.Unix(1_767_225_600, 0)}
	v.fake.SetNow(func() time.Time { return v.now })
	v.fake.SetCookieDomain("shop.example")
	v.fake.SetGPCPolicy("support", consenttest.GPCIgnore)
	granted := consent.Write{PrincipalID: "u-1", Purposes: []string{"newsletter", "support"}}
	must[consent.WriteResult](t)(v.fake.Grant(ctx, granted))
	v.cookie = v.fake.CookieFor("u-1")
	return v
}

func (v *visit) may(t *testing.T, principalID string, headers ...string) string {
	t.Helper()
	request := &http.Request{Header: http.Header{}}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	ask := consent.Ask{Purposes: []string{"ads", "newsletter", "support"}, PrincipalID: principalID}
	return strings.Join(must[consent.Permissions](t)(v.fake.May(ctx, request, ask)).Purposes, " ")
}

func TestMayReadsTheHeadersOfARequest(t *testing.T) {
	v := newVisit(t)
	for _, one := range []struct {
		headers  []string
		expected string
	}{
		{nil, ""},
		{[]string{"Cookie", v.cookie}, "newsletter support"},
		{[]string{"Cookie", "a=b", "Cookie", v.cookie}, "newsletter support"},
		{[]string{"Cookie", v.cookie, "Cookie", v.cookie}, ""},
		{[]string{"Cookie", v.cookie, "Sec-GPC", "0", "Sec-GPC", "1"}, "support"},
	} {
		if found := v.may(t, "", one.headers...); found != one.expected {
			t.Errorf("%v: %q", one.headers, found)
		}
	}
	_, err := v.fake.May(ctx, nil, consent.Ask{})
	if kindOf(err) != consent.KindInvalidRequest {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := v.fake.ReadState(cancelled, v.cookie); err != context.Canceled {
		t.Error(err)
	}
}

func TestFakeRenewsACookieAsTheServerDoes(t *testing.T) {
	v := newVisit(t)
	must[consent.WriteResult](t)(v.fake.Withdraw(ctx, write))
	// The cookie itself says so for five minutes: the banner replaces it at once.
	if found := v.may(t, "", "Cookie", v.cookie); found != "newsletter support" {
		t.Error(found)
	}
	if found := v.may(t, "u-1"); found != "support" {
		t.Error(found)
	}
	v.now = v.now.Add(5 * time.Minute)
	if state := must[*consent.VisitorState](t)(v.fake.ReadState(ctx, v.cookie)); state != nil {
		t.Error(state)
	}
	current := must[consent.CurrentState](t)(v.fake.CurrentState(ctx, v.cookie))
	if len(current.Purposes) != 1 || *current.Seq != 3 || !strings.HasSuffix(current.SetCookie, "; Domain=shop.example") {
		t.Error(current)
	}
	renewed, _, _ := strings.Cut(current.SetCookie, ";")
	state := must[*consent.VisitorState](t)(v.fake.ReadState(ctx, renewed))
	if state == nil || state.At != "2026-01-01T00:05:00.000Z" {
		t.Error(state)
	}
}

func TestFakeIsAsStrictAsTheClient(t *testing.T) {
	v, other := newVisit(t), newVisit(t)
	for _, cookie := range []string{other.cookie, v.cookie[:len(v.cookie)-2], v.cookie + "; " + v.cookie} {
		if state := must[*consent.VisitorState](t)(v.fake.ReadState(ctx, cookie)); state != nil {
			t.Error(state)
		}
	}
	v.now = v.now.Add(-61 * time.Second)
	if state := must[*consent.VisitorState](t)(v.fake.ReadState(ctx, v.cookie)); state != nil {
		t.Error(state)
	}
}

func TestFakeWithoutAServerDeniesVisitors(t *testing.T) {
	v := newVisit(t)
	v.fake.SetUnavailable(true)
	if found := v.may(t, "", "Cookie", v.cookie); found != "" {
		t.Error(found)
	}
	strict := consenttest.NewWith(consent.RaiseUnavailable)
	strict.SetUnavailable(true)
	cookie := strict.CookieFor("u-1")
	if _, err := strict.CurrentState(ctx, cookie); kindOf(err) != consent.KindNetwork {
		t.Error(err)
	}
	if state, err := strict.ReadState(ctx, cookie); state != nil || err != nil {
		t.Error(state, err)
	}
}
