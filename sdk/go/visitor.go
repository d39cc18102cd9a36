package consent

import (
	"context"
	"errors"
	"net/http"

	"gpd.dev/consent-go/internal/rules"
	"gpd.dev/consent-go/internal/visitor"
)

// VisitorState is a visitor's choices, read from the cookie gpd_consent.
type VisitorState struct {
	// Purposes that were granted.
	Purposes []string `json:"purposes"`
	// Seq is the newest entry of the log about this person.
	Seq int64 `json:"seq"`
	// At is the ISO time when gpd signed it.
	At string `json:"at"`
}

// CurrentState has no Purposes, Seq and At without a valid state.
type CurrentState struct {
	Purposes []string `json:"purposes"`
	Seq      *int64   `json:"seq"`
	At       *string  `json:"at"`
	// SetCookie is the value of a Set-Cookie header to send with the page, or "".
	SetCookie string `json:"setCookie"`
}

// Ask names the purposes of a page.
type Ask struct {
	Purposes []string
	// PrincipalID is your own id of the person who is signed in, whose account gpd is asked about; "" for nobody.
	PrincipalID string
}

// Permissions are the purposes that are allowed for one request.
type Permissions struct {
	// Purposes are the allowed ones, in the order of the question.
	Purposes []string `json:"purposes"`
	// SetCookie is the value of a Set-Cookie header to send with the page, or "".
	SetCookie string `json:"setCookie"`
}

// Allows is false for a purpose that May was not asked about.
func (p Permissions) Allows(purpose string) bool {
	for _, allowed := range p.Purposes {
		if allowed == purpose {
			return true
		}
	}
	return false
}

// ReadState returns what the cookie gpd_consent says, offline but for gpd's keys. Nil denies.
func (c *Client) ReadState(ctx context.Context, cookieHeader string) (*VisitorState, error) {
	ctx, cancel, err := c.question(ctx, "ReadState")
	if err != nil {
		return nil, err
	}
	defer cancel()
	state, err := c.visitors.Read(ctx, cookieHeader)
	if err != nil || state.Seq == nil {
		return nil, err
	}
	return &VisitorState{state.Purposes, *state.Seq, *state.At}, nil
}

// CurrentState is like ReadState, but asks gpd to renew a cookie that is older than five minutes.
func (c *Client) CurrentState(ctx context.Context, cookieHeader string) (CurrentState, error) {
	const name = "CurrentState"
	ctx, cancel, err := c.question(ctx, name)
	if err != nil {
		return CurrentState{}, err
	}
	defer cancel()
	state, err := c.visitors.Current(ctx, name, cookieHeader)
	return CurrentState(state), err
}

// May returns which purposes are allowed for the page that this request asks for. It heeds Sec-GPC.
func (c *Client) May(ctx context.Context, r *http.Request, ask Ask) (Permissions, error) {
	const name = "May"
	if hint := rules.Page(r, ask.Purposes, ask.PrincipalID); hint != "" {
		return Permissions{}, hinted(name, KindInvalidRequest, hint)
	}
	ctx, cancel, err := c.question(ctx, name)
	if err != nil {
		return Permissions{}, err
	}
	defer cancel()
	purposes, setCookie, err := c.visitors.May(ctx, r, ask.Purposes, ask.PrincipalID)
	return Permissions{purposes, setCookie}, err
}

// question gives all calls of a question one deadline.
func (c *Client) question(ctx context.Context, name string) (context.Context, context.CancelFunc, error) {
	timeout, refused := timeoutOf(ctx, call{name: name, timeout: c.settings.timeout})
	switch {
	case refused != nil:
		return nil, nil, refused
	case c.sender.isClosed():
		return nil, nil, coded(name, KindConfig, "closed")
	case ctx.Err() == context.Canceled:
		return nil, nil, context.Canceled
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	return within, cancel, nil
}

func newVisitors(c *Client) *visitor.Visitors {
	return &visitor.Visitors{
		Calls:        visitorCalls{c},
		CookieDomain: c.settings.cookieDomain,
		Now:          c.settings.now,
		Denies:       c.settings.onUnavailable == DenyUnavailable,
		IsUndecided: func(err error) bool {
			_, isDenial := undecided(err)
			return isDenial
		},
		IsGone: func(err error) bool {
			var failure *Error
			return errors.As(err, &failure) && failure.Kind == KindNotFound
		},
	}
}

// visitorCalls keeps the calls out of the methods of Client.
type visitorCalls struct{ client *Client }

func (v visitorCalls) FetchKeys(ctx context.Context, method string) (visitor.Keys, error) {
	return fetch(ctx, v.client, v.client.get(method, "/v1/consent/state-keys"), func(f *fields) visitor.Keys {
		keys, ok := visitor.ReadKeys(f.of)
		f.require(ok)
		return keys
	})
}

func (v visitorCalls) Refresh(ctx context.Context, method string, state *visitor.Signed, gpc bool) (visitor.Refreshed, error) {
	body := map[string]any{"state": state.Text}
	if gpc {
		body["gpc"] = true
	}
	request := v.client.post(method, "/v1/consent/state/refresh", body, state.Text)
	return fetch(ctx, v.client, request, func(f *fields) visitor.Refreshed {
		purposes, ok := visitor.Texts(f.of["purposes"])
		refreshed := visitor.Refreshed{Signed: visitor.Parse(f.text("state")), Purposes: purposes, Seq: f.seq("seq")}
		f.require(ok && refreshed.Signed != nil)
		return refreshed
	})
}

func (v visitorCalls) Allowed(ctx context.Context, method, principalID string, purposes []string) ([]bool, error) {
	checks := make([]Check, len(purposes))
	for i, purpose := range purposes {
		checks[i] = Check{PrincipalID: principalID, Purpose: purpose}
	}
	decisions, err := v.client.checkMany(ctx, method, checks)
	if err != nil {
		return nil, err
	}
	allowed := make([]bool, len(decisions))
	for i, decision := range decisions {
		allowed[i] = decision.Allowed
	}
	return allowed, nil
}
