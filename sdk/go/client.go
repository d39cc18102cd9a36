package consent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"gpd.dev/consent-go/internal/rules"
)

// Client of gpd's consent API. Make one, share it between goroutines, keep it as long as the process lives.
type Client struct {
	// Sessions makes tokens for people's browsers.
	Sessions *Sessions
	settings settings
	sender   *sender
}

var _ Consent = (*Client)(nil)

// New makes a client, or fails with kind config.
func New(options Options) (*Client, error) { return newClient("New", options) }

// FromEnv reads GPD_CONSENT_URL and GPD_CONSENT_KEY; the other options are passed beside.
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
	return client, nil
}

// Format never tells the key.
func (*Client) Format(state fmt.State, _ rune) { fmt.Fprint(state, "consent.Client") }

// Close ends what is running and gives the connections back; later calls are refused.
func (c *Client) Close() error {
	c.sender.shut()
	return nil
}

// IsAllowed tells whether this processing may happen: true for nothing but a decision that says so.
func (c *Client) IsAllowed(ctx context.Context, check Check) (bool, error) {
	decision, err := c.check(ctx, "IsAllowed", check)
	return decision.Allowed, err
}

// CanProcess is the decision with its reason and proof.
func (c *Client) CanProcess(ctx context.Context, check Check) (Decision, error) {
	return c.check(ctx, "CanProcess", check)
}

// CanProcessMany makes up to 100 decisions of one snapshot, in the order asked. A check with MinSeq is refused.
func (c *Client) CanProcessMany(ctx context.Context, checks []Check) ([]Decision, error) {
	const name = "CanProcessMany"
	if hint := batchHint(checks); hint != "" {
		return nil, hinted(name, KindInvalidRequest, hint)
	}
	decisions := make([]Decision, len(checks))
	if len(checks) == 0 {
		return decisions, nil
	}
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
	asked := c.post(name, "/v1/consent/can-process/batch", map[string]any{"checks": items}, principals...)
	got, err := c.sender.send(ctx, asked)
	found, ok := readBatch(parseObject(got.body))
	if err == nil && !ok {
		err = malformed(asked, got)
	}
	for i := range decisions {
		decision := found[strconv.Itoa(i)]
		if decision != nil && err == nil {
			decisions[i] = *decision
			continue
		}
		cause := err
		if cause == nil {
			cause = malformed(asked, got)
		}
		if decisions[i], cause = c.undecided(cause); cause != nil {
			return nil, cause
		}
	}
	return decisions, nil
}

func batchHint(checks []Check) string {
	asked := make([]rules.Asked, len(checks))
	for i, check := range checks {
		asked[i] = rules.Asked{PrincipalID: check.PrincipalID, Purpose: check.Purpose, MinSeq: check.MinSeq}
	}
	return rules.Batch(asked)
}

func (c *Client) check(ctx context.Context, name string, check Check) (Decision, error) {
	if hint := rules.Check(check.PrincipalID, check.Purpose, check.MinSeq); hint != "" {
		return Decision{}, hinted(name, KindInvalidRequest, hint)
	}
	asked := c.post(name, "/v1/consent/can-process", check, check.PrincipalID)
	got, err := c.sender.send(ctx, asked)
	if err != nil {
		return c.undecided(err)
	}
	if decision, ok := readDecision(parseObject(got.body)); ok {
		return decision, nil
	}
	return c.undecided(malformed(asked, got))
}

// undecided is the one place where an error becomes a denial.
func (c *Client) undecided(err error) (Decision, error) {
	cause, isDenial := undecided(err)
	if isDenial && c.settings.onUnavailable == DenyUnavailable {
		return Decision{Reason: "unavailable", Given: "unknown", Err: cause}, nil
	}
	return Decision{}, err
}

func malformed(c call, got answer) error {
	err := plain(c.name, KindResponse)
	err.Status, err.RequestID = got.status, got.requestID
	return err
}

func (c *Client) get(name, path string) call {
	return call{name: name, verb: http.MethodGet, path: path, statuses: []int{http.StatusOK}, timeout: c.settings.timeout}
}

func (c *Client) post(name, path string, body any, principals ...string) call {
	// Texts, integers and booleans: this cannot fail.
	text, _ := json.Marshal(body)
	return call{
		name: name, verb: http.MethodPost, path: path, body: text,
		statuses: []int{http.StatusOK}, timeout: c.settings.timeout, principals: principals,
	}
}

// fetch sends a call and reads its answer by shape.
func fetch[T any](ctx context.Context, c *Client, asked call, shape func(*fields) T) (T, error) {
	var none T
	got, err := c.sender.send(ctx, asked)
	if err != nil {
		return none, err
	}
	object := parseObject(got.body)
	f := &fields{of: object, bad: object == nil}
	value := shape(f)
	if f.bad {
		return none, malformed(asked, got)
	}
	return value, nil
}

// newKey is a random UUID, version 4.
func newKey() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
