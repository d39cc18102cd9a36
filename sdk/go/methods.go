package consent

import (
	"context"
	"strconv"
	"strings"

	"gpd.dev/consent-go/internal/rules"
)

// Grant records that a person agrees.
func (c *Client) Grant(ctx context.Context, write Write) (WriteResult, error) {
	return c.write(ctx, "Grant", "grant", write)
}

// Deny records that a person does not agree.
func (c *Client) Deny(ctx context.Context, write Write) (WriteResult, error) {
	return c.write(ctx, "Deny", "deny", write)
}

// Withdraw ends a grant: after it has returned, every further check is denied, on every node.
func (c *Client) Withdraw(ctx context.Context, write Write) (WriteResult, error) {
	return c.write(ctx, "Withdraw", "withdraw", write)
}

func (c *Client) write(ctx context.Context, name, of string, write Write) (WriteResult, error) {
	hint := rules.Write(write.PrincipalID, write.Purposes, write.IdempotencyKey)
	if err := c.allow(ctx, name, hint, write); err != nil {
		return WriteResult{}, err
	}
	request := callOf(name, of, "", write, write.PrincipalID)
	request.key = write.IdempotencyKey
	if request.key == "" {
		generated, err := newKey()
		if err != nil {
			return WriteResult{}, hinted(name, KindConfig, "the system has no source of chance")
		}
		request.key = generated
	}
	return fetch[WriteResult](ctx, c, request)
}

// allow refuses invalid arguments, then what needs no call.
func (c *Client) allow(ctx context.Context, name, hint string, args ...any) error {
	if hint != "" {
		return hinted(name, KindInvalidRequest, hint)
	}
	return c.begin(ctx, name, args...)
}

type ofPrincipal struct {
	PrincipalID string `json:"principalId"`
	Cursor      string `json:"cursor,omitempty"`
	Limit       int    `json:"limit,omitempty"`
}

// State returns a person's latest choice for each purpose.
func (c *Client) State(ctx context.Context, principalID string) (State, error) {
	if err := c.allow(ctx, "State", rules.Principal(principalID), principalID); err != nil {
		return State{}, err
	}
	body := ofPrincipal{PrincipalID: principalID}
	state, err := fetch[State](ctx, c, callOf("State", "state", "", body, principalID))
	for i := range state.Purposes {
		if state.Purposes[i].Given == "" {
			state.Purposes[i].Given = "unknown"
		}
	}
	return state, err
}

// History returns one page of a person's choices, newest first.
func (c *Client) History(ctx context.Context, principalID string, page Page) (History, error) {
	if err := c.allow(ctx, "History", rules.Principal(principalID), principalID, page); err != nil {
		return History{}, err
	}
	body := ofPrincipal{principalID, page.Cursor, page.Limit}
	return fetch[History](ctx, c, callOf("History", "history", "", body, principalID))
}

// HistoryAll returns all choices of a person, newest first; each page of page.Limit is asked for when it is needed. From Go 1.23 on:
// for event, err := range client.HistoryAll(ctx, id, consent.Page{}). After an error it ends.
func (c *Client) HistoryAll(ctx context.Context, principalID string, page Page) func(yield func(Event, error) bool) {
	return func(yield func(Event, error) bool) {
		for {
			found, err := c.History(ctx, principalID, page)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, event := range found.Events {
				if !yield(event, nil) {
					return
				}
			}
			if found.NextCursor == nil {
				return
			}
			page.Cursor = *found.NextCursor
		}
	}
}

// Sessions creates tokens of a client.
type Sessions struct{ client *Client }

// Create is CreateSession of the client.
func (s *Sessions) Create(ctx context.Context, principalID string) (Session, error) {
	return s.client.CreateSession(ctx, principalID)
}

// CreateSession returns a token for one person, valid for at most 15 minutes. Give it only to that person's browser.
func (c *Client) CreateSession(ctx context.Context, principalID string) (Session, error) {
	const name = "Sessions.Create"
	if err := c.allow(ctx, name, rules.Principal(principalID), principalID); err != nil {
		return Session{}, err
	}
	body := ofPrincipal{PrincipalID: principalID}
	return fetch[Session](ctx, c, callOf(name, "sessions.create", "", body, principalID))
}

// Join joins a browser with the account of a session: from then on each answers for both.
func (c *Client) Join(ctx context.Context, session string, browser BrowserPrincipal) (Join, error) {
	hint := firstHint(rules.Text("session", session), rules.Principal(browser.PrincipalID), rules.Text("PrincipalSecret", browser.PrincipalSecret))
	if err := c.allow(ctx, "Join", hint, session, browser); err != nil {
		return Join{}, err
	}
	request := callOf("Join", "join", "", browser, session, browser.PrincipalID, browser.PrincipalSecret)
	request.token = session
	return fetch[Join](ctx, c, request)
}

// Link links the visit behind a transparency token with the person of a session.
func (c *Client) Link(ctx context.Context, session, token string) (Link, error) {
	hint := firstHint(rules.Text("session", session), rules.Text("token", token))
	if err := c.allow(ctx, "Link", hint, session, token); err != nil {
		return Link{}, err
	}
	request := callOf("Link", "link", "", map[string]string{"token": token}, session, token)
	request.token = session
	return fetch[Link](ctx, c, request)
}

// Erase erases the consent record of the person of a session.
func (c *Client) Erase(ctx context.Context, session string) (ErasureReceipt, error) {
	if err := c.allow(ctx, "Erase", rules.Text("session", session), session); err != nil {
		return ErasureReceipt{}, err
	}
	request := callOf("Erase", "erase", "", struct{}{}, session)
	request.token = session
	return fetch[ErasureReceipt](ctx, c, request)
}

func firstHint(hints ...string) string {
	for _, hint := range hints {
		if hint != "" {
			return hint
		}
	}
	return ""
}

// Purposes returns the purposes of the tenant.
func (c *Client) Purposes(ctx context.Context) ([]Purpose, error) {
	if err := c.begin(ctx, "Purposes"); err != nil {
		return nil, err
	}
	found, err := fetch[Purposes](ctx, c, callOf("Purposes", "purposes", "", nil))
	return found.Purposes, err
}

// SavePurposes defines or changes purposes; it needs a key of scope operator. Material false: the changes ask nobody again.
func (c *Client) SavePurposes(ctx context.Context, purposes []PurposeDefinition, material *bool) (SavedPurposes, error) {
	const name = "SavePurposes"
	if err := c.begin(ctx, name, purposes, material); err != nil {
		return SavedPurposes{}, err
	}
	body := map[string]any{"purposes": purposes}
	if material != nil {
		body["material"] = *material
	}
	return fetch[SavedPurposes](ctx, c, callOf(name, "savePurposes", "", body))
}

// Policies returns the policy versions of the tenant.
func (c *Client) Policies(ctx context.Context) ([]Policy, error) {
	if err := c.begin(ctx, "Policies"); err != nil {
		return nil, err
	}
	found, err := fetch[Policies](ctx, c, callOf("Policies", "policies", "", nil))
	return found.Policies, err
}

// PublishPolicy publishes the next policy version; it needs a key of scope operator. Material: everybody is asked again.
func (c *Client) PublishPolicy(ctx context.Context, text string, material bool) (PublishedPolicy, error) {
	const name = "PublishPolicy"
	if err := c.begin(ctx, name, text, material); err != nil {
		return PublishedPolicy{}, err
	}
	body := map[string]any{"text": text, "material": material}
	return fetch[PublishedPolicy](ctx, c, callOf(name, "publishPolicy", "", body))
}

// Checkpoint returns the signed head of the tenant's log.
func (c *Client) Checkpoint(ctx context.Context) (string, error) {
	if err := c.begin(ctx, "Checkpoint"); err != nil {
		return "", err
	}
	return c.text(ctx, callOf("Checkpoint", "checkpoint", "", nil))
}

// VKey returns the key that verifies checkpoints and proofs. Pin it: store it where gpd cannot change it.
func (c *Client) VKey(ctx context.Context) (string, error) {
	if err := c.begin(ctx, "VKey"); err != nil {
		return "", err
	}
	key, err := c.text(ctx, callOf("VKey", "vkey", "", nil))
	return strings.TrimSpace(key), err
}

// ExportLog returns all entries of the log, one JSON value a line; at most 256 MiB.
func (c *Client) ExportLog(ctx context.Context) (string, error) {
	if err := c.begin(ctx, "ExportLog"); err != nil {
		return "", err
	}
	return c.text(ctx, callOf("ExportLog", "exportLog", "", nil))
}

// Receipt returns a signed copy of an entry, for the person it is about.
func (c *Client) Receipt(ctx context.Context, seq int64) (Receipt, error) {
	if err := c.allow(ctx, "Receipt", rules.Seq(seq), seq); err != nil {
		return Receipt{}, err
	}
	return fetch[Receipt](ctx, c, callOf("Receipt", "receipt", strconv.FormatInt(seq, 10), nil))
}

// Proof returns the proof of an entry as text, for VerifyProof or an auditor.
func (c *Client) Proof(ctx context.Context, seq int64) (string, error) {
	if err := c.allow(ctx, "Proof", rules.Seq(seq), seq); err != nil {
		return "", err
	}
	return c.text(ctx, callOf("Proof", "proof", strconv.FormatInt(seq, 10), nil))
}

// Decision returns the verdict of a visit. A browser must not deliver its own verdict.
func (c *Client) Decision(ctx context.Context, requestID string) (Verdict, error) {
	if err := c.allow(ctx, "Decision", rules.RequestID(requestID), requestID); err != nil {
		return Verdict{}, err
	}
	request := callOf("Decision", "decision", requestID, nil)
	got, err := c.sender.send(ctx, request)
	if err != nil {
		return Verdict{}, err
	}
	var sent wireVerdict
	whole, ok := decode("decision", got.body, &sent)
	if !ok || sent.RequestID != requestID {
		return Verdict{}, c.malformed(request, got)
	}
	return readVerdict(whole, sent), nil
}

// ReportOutcome reports the outcome of a decision once. Repeating it changes nothing; a different outcome is a conflict.
func (c *Client) ReportOutcome(ctx context.Context, requestID string, report OutcomeReport) (ReportedOutcome, error) {
	const name = "ReportOutcome"
	if err := c.allow(ctx, name, rules.Report(requestID, report.Outcome), requestID, report); err != nil {
		return ReportedOutcome{}, err
	}
	request := callOf(name, "reportOutcome", requestID, report)
	got, err := c.sender.send(ctx, request)
	if err != nil {
		return ReportedOutcome{}, err
	}
	var stored ReportedOutcome
	_, ok := decode("reportOutcome", got.body, &stored)
	if !ok || stored.RequestID != requestID || stored.Outcome != report.Outcome {
		return ReportedOutcome{}, c.malformed(request, got)
	}
	return stored, nil
}

// Ping succeeds if the server answers; the key is not checked.
func (c *Client) Ping(ctx context.Context) (Health, error) {
	if err := c.begin(ctx, "Ping"); err != nil {
		return Health{}, err
	}
	request := callOf("Ping", "ping", "", nil)
	got, err := c.sender.send(ctx, request)
	var health Health
	if err != nil {
		return health, err
	}
	if _, ok := decode("ping", got.body, &health); !ok || health.Status != "ok" {
		return Health{}, c.malformed(request, got)
	}
	return health, nil
}
