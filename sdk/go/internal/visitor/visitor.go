package visitor

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// Refreshed is an answer of POST /v1/consent/state/refresh.
type Refreshed struct {
	Signed   *Signed
	Purposes []string
	Seq      int64
}

// Calls are those of the client or the fake.
type Calls interface {
	FetchKeys(ctx context.Context, method string) (Keys, error)
	Refresh(ctx context.Context, method string, state *Signed, gpc bool) (Refreshed, error)
	// Allowed returns one item for each purpose.
	Allowed(ctx context.Context, method, principalID string, purposes []string) ([]bool, error)
}

// Visitors has the keys and the rules of one client.
type Visitors struct {
	Calls        Calls
	CookieDomain string
	Now          func() time.Time
	// Denies is true if what could not be decided is a denial, and false if it is an error.
	Denies bool
	// IsUndecided is false for errors that the caller has to fix.
	IsUndecided func(error) bool
	// IsGone is true for a status of 404.
	IsGone func(error) bool

	keys keyCache
}

// State is what a cookie says. Without a valid one Purposes is empty, and Seq and At are nil.
type State struct {
	Purposes  []string
	Seq       *int64
	At        *string
	SetCookie string
}

func nobody() State { return State{Purposes: []string{}} }

func stateOf(purposes []string, seq int64, at, setCookie string) State {
	return State{purposes, &seq, &at, setCookie}
}

// Read returns the state of a cookie that is not old.
func (v *Visitors) Read(ctx context.Context, header string) (State, error) {
	state, err := v.genuine(ctx, "ReadState", header)
	switch {
	case err != nil && !v.IsUndecided(err):
		return nobody(), err
	case err != nil || state == nil || !state.isFresh(v.Now()):
		return nobody(), nil
	}
	return stateOf(state.purposes, state.seq, state.At(), ""), nil
}

// Current also renews an old one.
func (v *Visitors) Current(ctx context.Context, method, header string) (State, error) {
	state, err := v.genuine(ctx, method, header)
	switch {
	case err != nil:
		return v.undecided(err)
	case state == nil:
		return nobody(), nil
	case state.isFresh(v.Now()):
		return stateOf(state.purposes, state.seq, state.At(), ""), nil
	}
	return v.refresh(ctx, method, state, false)
}

// May returns which of the purposes are allowed, and a cookie to set.
func (v *Visitors) May(ctx context.Context, r *http.Request, purposes []string, principalID string) ([]string, string, error) {
	const method = "May"
	gpc := hasSignal(r.Header)
	// A check of an account cannot carry the signal of this request, so under GPC the cookie has to allow it too.
	if principalID != "" && !gpc {
		allowed, err := v.allowedFor(ctx, method, principalID, purposes)
		return allowed, "", err
	}
	ask := v.Current
	if gpc {
		ask = v.underGPC
	}
	state, err := ask(ctx, method, strings.Join(r.Header.Values("Cookie"), "; "))
	if err != nil {
		return nil, "", err
	}
	allowed := common(purposes, state.Purposes)
	if principalID != "" {
		allowed, err = v.allowedFor(ctx, method, principalID, allowed)
	}
	return allowed, state.SetCookie, err
}

func hasSignal(header http.Header) bool {
	for _, value := range header.Values("Sec-GPC") {
		for _, signal := range strings.Split(value, ",") {
			if strings.TrimSpace(signal) == "1" {
				return true
			}
		}
	}
	return false
}

// common returns the purposes that are in granted too, in their order.
func common(purposes, granted []string) []string {
	isGranted := map[string]bool{}
	for _, purpose := range granted {
		isGranted[purpose] = true
	}
	both := []string{}
	for _, purpose := range purposes {
		if isGranted[purpose] {
			both = append(both, purpose)
		}
	}
	return both
}

// genuine returns a state that gpd signed for this tenant, of any age, or nil. It fails when that could not be found out.
func (v *Visitors) genuine(ctx context.Context, method, header string) (*Signed, error) {
	state, now := Parse(readCookie(header)), v.Now()
	if state == nil || state.isEarly(now) {
		return nil, nil
	}
	isGenuine, err := v.verify(ctx, method, state, now)
	if err != nil || !isGenuine {
		return nil, err
	}
	return state, nil
}

// underGPC has the purposes that gpd allows under this signal. The cookie stays as it is: the signal is that of one request.
func (v *Visitors) underGPC(ctx context.Context, method, header string) (State, error) {
	state, err := v.genuine(ctx, method, header)
	if err != nil {
		return v.undecided(err)
	}
	if state == nil {
		return nobody(), nil
	}
	current, err := v.refresh(ctx, method, state, true)
	if current.Seq != nil {
		current.SetCookie = ""
	}
	return current, err
}

func (v *Visitors) refresh(ctx context.Context, method string, state *Signed, gpc bool) (State, error) {
	refreshed, err := v.Calls.Refresh(ctx, method, state, gpc)
	switch {
	case err == nil:
		setCookie := setCookieOf(refreshed.Signed.Text, v.CookieDomain)
		return stateOf(refreshed.Purposes, refreshed.Seq, refreshed.Signed.At(), setCookie), nil
	case v.IsGone(err):
		gone := nobody()
		gone.SetCookie = setCookieOf("", v.CookieDomain)
		return gone, nil
	}
	return v.undecided(err)
}

// undecided is the only place where an error becomes a denial.
func (v *Visitors) undecided(err error) (State, error) {
	if v.Denies && v.IsUndecided(err) {
		return nobody(), nil
	}
	return nobody(), err
}

func (v *Visitors) allowedFor(ctx context.Context, method, principalID string, purposes []string) ([]string, error) {
	allowed := []string{}
	if len(purposes) == 0 {
		return allowed, nil
	}
	answers, err := v.Calls.Allowed(ctx, method, principalID, purposes)
	if err != nil {
		return nil, err
	}
	for i, purpose := range purposes {
		if answers[i] {
			allowed = append(allowed, purpose)
		}
	}
	return allowed, nil
}
