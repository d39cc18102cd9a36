package consent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"gpd.dev/consent-go/internal/rules"
	"gpd.dev/consent-go/internal/visitor"
)

// Client of gpd's consent API. Create one per process and share it between goroutines.
type Client struct {
	// Sessions creates tokens for people's browsers.
	Sessions *Sessions
	settings settings
	visitors *visitor.Visitors
	sender   *sender
	// recorder is the fake's, which notes the calls.
	recorder rules.Recorder
}

var _ Consent = (*Client)(nil)

// New returns a client, or fails with kind config.
func New(options Options) (*Client, error) { return newClient("New", options) }

// FromEnv reads GPD_CONSENT_URL and GPD_CONSENT_KEY; all other options come from options.
func FromEnv(options Options) (*Client, error) {
	complete, err := withEnv(options)
	if err != nil {
		return nil, err
	}
	return newClient("FromEnv", complete)
}

func newClient(method string, options Options) (*Client, error) {
	of, err := readOptions(method, options)
	if err != nil {
		return nil, err
	}
	client := &Client{settings: of, sender: newSender(of, options.Transport)}
	client.Sessions = &Sessions{client}
	client.recorder, _ = options.Transport.(rules.Recorder)
	client.visitors = newVisitors(client)
	return client, nil
}

// Format never prints the key.
func (*Client) Format(state fmt.State, _ rune) { fmt.Fprint(state, "consent.Client") }

// Close cancels running calls and closes the connections; later calls are refused.
func (c *Client) Close() error {
	c.sender.shut()
	return nil
}

// IsAllowed returns true only if the server's decision allows this processing.
func (c *Client) IsAllowed(ctx context.Context, check Check) (bool, error) {
	decision, err := c.check(ctx, "IsAllowed", check)
	return decision.Allowed, err
}

// CanProcess returns the decision with its reason and proof.
func (c *Client) CanProcess(ctx context.Context, check Check) (Decision, error) {
	return c.check(ctx, "CanProcess", check)
}

// CanProcessMany returns up to 100 decisions of one snapshot, in the order of the checks. A check with MinSeq is refused.
func (c *Client) CanProcessMany(ctx context.Context, checks []Check) ([]Decision, error) {
	const name = "CanProcessMany"
	if hint := batchHint(checks); hint != "" {
		return nil, hinted(name, KindInvalidRequest, hint)
	}
	if err := c.begin(ctx, name, checks); err != nil || len(checks) == 0 {
		return []Decision{}, err
	}
	return c.checkMany(ctx, name, checks)
}

func (c *Client) checkMany(ctx context.Context, name string, checks []Check) ([]Decision, error) {
	decisions := make([]Decision, len(checks))
	type item struct {
		ID string `json:"id"`
		Check
	}
	items := make([]item, len(checks))
	principals := make([]string, len(checks))
	for i, check := range checks {
		items[i] = item{strconv.Itoa(i), check}
		principals[i] = check.PrincipalID
	}
	request := callOf(name, "canProcessMany", "", map[string]any{"checks": items}, principals...)
	got, err := c.sender.send(ctx, request)
	found, ok := readBatch(parseObject(got.body))
	if err == nil && !ok {
		err = c.malformed(request, got)
	}
	for i := range decisions {
		decision := found[strconv.Itoa(i)]
		if decision != nil && err == nil {
			decisions[i] = *decision
			continue
		}
		cause := err
		if cause == nil {
			cause = c.malformed(request, got)
		}
		if decisions[i], cause = c.undecided(cause); cause != nil {
			return nil, cause
		}
	}
	return decisions, nil
}

func batchHint(checks []Check) string {
	batch := make([]rules.Asked, len(checks))
	for i, check := range checks {
		batch[i] = rules.Asked{PrincipalID: check.PrincipalID, Purpose: check.Purpose, MinSeq: check.MinSeq}
	}
	return rules.Batch(batch)
}

func (c *Client) check(ctx context.Context, name string, check Check) (Decision, error) {
	if hint := rules.Check(check.PrincipalID, check.Purpose, check.MinSeq); hint != "" {
		return Decision{}, hinted(name, KindInvalidRequest, hint)
	}
	if err := c.begin(ctx, name, check); err != nil {
		return Decision{}, err
	}
	request := callOf(name, "canProcess", "", check, check.PrincipalID)
	got, err := c.sender.send(ctx, request)
	if err != nil {
		return c.undecided(err)
	}
	if decision, ok := readDecision(parseObject(got.body)); ok {
		return decision, nil
	}
	return c.undecided(c.malformed(request, got))
}

// undecided is the only place where an error becomes a denial.
func (c *Client) undecided(err error) (Decision, error) {
	cause, isDenial := undecided(err)
	if isDenial && c.settings.onUnavailable == DenyUnavailable {
		return Decision{Reason: "unavailable", Given: "unknown", Err: cause}, nil
	}
	return Decision{}, err
}

func (c *Client) malformed(request call, got answer) error {
	err := plain(request.name, KindResponse)
	err.Status, err.RequestID, err.Detail = got.status, got.requestID, DetailBody
	return c.sender.tell(err)
}

// begin refuses what needs no call, and shows the call to the fake.
func (c *Client) begin(ctx context.Context, name string, args ...any) error {
	switch {
	case c.sender.isClosed():
		return coded(name, KindConfig, "closed")
	case ctx.Err() == context.Canceled:
		return context.Canceled
	case c.recorder != nil:
		c.recorder.Record(name, args)
	}
	return nil
}

// callOf puts param into the path. A body of nil is none.
func callOf(name, of, param string, body any, secrets ...string) call {
	path := operations[of].path
	if from := strings.IndexByte(path, '{'); from >= 0 {
		path = path[:from] + param + path[strings.IndexByte(path, '}')+1:]
	}
	request := call{name: name, operation: of, path: path, secrets: secrets}
	if body != nil {
		// Texts, integers and booleans cannot fail to encode.
		request.body, _ = json.Marshal(body)
	}
	return request
}

// fetch sends a call and reads its answer.
func fetch[T any](ctx context.Context, c *Client, request call) (T, error) {
	var result T
	got, err := c.sender.send(ctx, request)
	if err != nil {
		return result, err
	}
	if _, ok := decode(request.operation, got.body, &result); !ok {
		var none T
		return none, c.malformed(request, got)
	}
	return result, nil
}

func (c *Client) text(ctx context.Context, request call) (string, error) {
	got, err := c.sender.send(ctx, request)
	if err != nil {
		return "", err
	}
	if got.body == nil {
		return "", c.malformed(request, got)
	}
	return string(got.body), nil
}

// newKey returns a random UUID, version 4.
func newKey() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
