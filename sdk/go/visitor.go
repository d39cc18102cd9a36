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
	ctx, cancel, err := c.question(ctx, "ReadState", cookieHeader)
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
	ctx, cancel, err := c.question(ctx, name, cookieHeader)
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
	ctx, cancel, err := c.question(ctx, name, r, ask)
	if err != nil {
		return Permissions{}, err
	}
	defer cancel()
	purposes, setCookie, err := c.visitors.May(ctx, r, ask.Purposes, ask.PrincipalID)
	return Permissions{purposes, setCookie}, err
}

// question gives all calls of a question one deadline.
func (c *Client) question(ctx context.Context, name string, args ...any) (context.Context, context.CancelFunc, error) {
	timeout, refused := timeoutOf(ctx, name, c.settings.timeout)
	if refused != nil {
		return nil, nil, refused
	}
	if err := c.begin(ctx, name, args...); err != nil {
		return nil, nil, err
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
	request := callOf(method, "stateKeys", "", nil)
	got, err := v.client.sender.send(ctx, request)
	if err != nil {
		return visitor.Keys{}, err
	}
	keys, ok := visitor.ReadKeys(parseObject(got.body))
	if !ok {
		return visitor.Keys{}, v.client.malformed(request, got)
	}
	return keys, nil
}

func (v visitorCalls) Refresh(ctx context.Context, method string, state *visitor.Signed, gpc bool) (visitor.Refreshed, error) {
	body := map[string]any{"state": state.Text}
	if gpc {
		body["gpc"] = true
	}
	request := callOf(method, "refreshState", "", body, state.Text)
	got, err := v.client.sender.send(ctx, request)
	if err != nil {
		return visitor.Refreshed{}, err
	}
	var sent struct {
		State    string
		Purposes []string
		Seq      int64
	}
	_, ok := decode("refreshState", got.body, &sent)
	refreshed := visitor.Refreshed{Signed: visitor.Parse(sent.State), Purposes: sent.Purposes, Seq: sent.Seq}
	if !ok || refreshed.Signed == nil {
		return visitor.Refreshed{}, v.client.malformed(request, got)
	}
	return refreshed, nil
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
