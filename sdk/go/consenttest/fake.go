// Package consenttest has a fake of the client for your tests. It works in memory and allows only what was granted.
package consenttest

import (
	"net/http"
	"time"

	consent "gpd.dev/consent-go"
)

// Call is a recorded call.
type Call struct {
	// Method is the Go name, such as "IsAllowed".
	Method string
	// Args are the arguments after the context.
	Args []any
}

// Fake replaces a *consent.Client in tests: it is one whose calls are answered from memory. It is safe for many goroutines.
type Fake struct {
	*consent.Client
	server        *server
	onUnavailable consent.OnUnavailable
}

var _ consent.Consent = (*Fake)(nil)

// New returns a fake that denies a check which cannot be decided.
func New() *Fake { return NewWith(consent.DenyUnavailable) }

// NewWith sets the result of a check that cannot be decided.
func NewWith(onUnavailable consent.OnUnavailable) *Fake {
	fake := &Fake{server: newServer(), onUnavailable: onUnavailable}
	fake.open("")
	return fake
}

func (f *Fake) open(cookieDomain string) {
	client, err := consent.New(consent.Options{
		URL: "http://fake.example", Key: "fake", Retries: consent.Retries(0), OnUnavailable: f.onUnavailable,
		CookieDomain: cookieDomain, Now: f.server.clock, Transport: f.server,
	})
	if err != nil {
		panic(err)
	}
	f.Client = client
}

// Calls returns all calls, in order.
func (f *Fake) Calls() []Call {
	f.server.mutex.Lock()
	defer f.server.mutex.Unlock()
	return append([]Call(nil), f.server.calls...)
}

// SetUnavailable makes everything answer as if the server were gone, or as before again.
func (f *Fake) SetUnavailable(unavailable bool) {
	f.set(func(s *server) { s.isUnavailable = unavailable })
}

// SetNextError makes the next call that reaches the server fail once with this kind. Code may be empty.
func (f *Fake) SetNextError(kind consent.Kind, code string) {
	f.set(func(s *server) { s.nextKind, s.nextCode = kind, code })
}

// SetPurposes sets the only purposes that exist. Without it every purpose is known.
func (f *Fake) SetPurposes(purposes ...string) {
	f.set(func(s *server) { s.log.purposes = append([]string{}, purposes...) })
}

// SetTTLDays sets the days after which a grant of this purpose expires by the clock; without it never.
func (f *Fake) SetTTLDays(purpose string, days float64) {
	f.set(func(s *server) { s.log.ttlDays[purpose] = days })
}

// SetGPCPolicy sets the effect of Global Privacy Control on a purpose; GPCOptOut if it was not set.
func (f *Fake) SetGPCPolicy(purpose string, policy GPCPolicy) {
	f.set(func(s *server) { s.log.policies[purpose] = policy })
}

// SetCookieDomain sets the domain of cookies, as consent.Options.CookieDomain does.
func (f *Fake) SetCookieDomain(domain string) { f.open(domain) }

// SetNow sets the clock of grants and cookies; time.Now if it was not set.
func (f *Fake) SetNow(now func() time.Time) { f.set(func(s *server) { s.now = now }) }

// SetAgent sets what Agent answers about signed requests; without it their keys are not known.
func (f *Fake) SetAgent(answer consent.AgentAnswer) { f.set(func(s *server) { s.agent = answer }) }

// SetDecision sets the verdict that Decision returns for this request.
func (f *Fake) SetDecision(requestID string, verdict consent.Verdict) {
	f.set(func(s *server) { s.verdicts[requestID] = s.wireOf(requestID, verdict) })
}

// CookieFor returns a Cookie header as this person's browser would send it now. Later it is as old as the clock of SetNow says.
func (f *Fake) CookieFor(principalID string) string {
	f.server.mutex.Lock()
	defer f.server.mutex.Unlock()
	return "gpd_consent=" + f.server.sign(principalID, false)["state"].(string)
}

func (f *Fake) set(change func(*server)) {
	f.server.mutex.Lock()
	defer f.server.mutex.Unlock()
	change(f.server)
}

// statusOf has a status for each kind that comes with one.
var statusOf = map[consent.Kind]int{
	consent.KindInvalidRequest: http.StatusBadRequest, consent.KindUnauthenticated: http.StatusUnauthorized,
	consent.KindPermissionDenied: http.StatusForbidden, consent.KindNotFound: http.StatusNotFound,
	consent.KindTimeout: http.StatusRequestTimeout, consent.KindConflict: http.StatusConflict,
	consent.KindRateLimited: http.StatusTooManyRequests, consent.KindServer: http.StatusInternalServerError,
	consent.KindResponse: http.StatusNoContent,
}
