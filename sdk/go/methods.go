package consent

import (
	"context"
	"net/http"
	"strconv"

	"gpd.dev/consent-go/internal/rules"
)

// Grant records that a person agrees.
func (c *Client) Grant(ctx context.Context, write Write) (WriteResult, error) {
	return c.write(ctx, "Grant", "/v1/consent/grant", write)
}

// Deny records that a person does not agree.
func (c *Client) Deny(ctx context.Context, write Write) (WriteResult, error) {
	return c.write(ctx, "Deny", "/v1/consent/deny", write)
}

// Withdraw ends a grant: after it has returned, every further check is denied, on every node.
func (c *Client) Withdraw(ctx context.Context, write Write) (WriteResult, error) {
	return c.write(ctx, "Withdraw", "/v1/consent/withdraw", write)
}

func (c *Client) write(ctx context.Context, name, path string, write Write) (WriteResult, error) {
	if hint := rules.Write(write.PrincipalID, write.Purposes, write.IdempotencyKey); hint != "" {
		return WriteResult{}, hinted(name, KindInvalidRequest, hint)
	}
	key := write.IdempotencyKey
	if key == "" {
		generated, err := newKey()
		if err != nil {
			return WriteResult{}, hinted(name, KindConfig, "the system has no source of chance")
		}
		key = generated
	}
	request := c.post(name, path, write, write.PrincipalID)
	request.statuses, request.timeout, request.key = []int{http.StatusCreated}, c.settings.writeTimeout, key
	return fetch(ctx, c, request, readWriteResult)
}

type ofPrincipal struct {
	PrincipalID string `json:"principalId"`
	Cursor      string `json:"cursor,omitempty"`
	Limit       int    `json:"limit,omitempty"`
}

// State returns a person's latest choice for each purpose.
func (c *Client) State(ctx context.Context, principalID string) (State, error) {
	if hint := rules.Principal(principalID); hint != "" {
		return State{}, hinted("State", KindInvalidRequest, hint)
	}
	request := c.post("State", "/v1/consent/state", ofPrincipal{PrincipalID: principalID}, principalID)
	return fetch(ctx, c, request, readState)
}

// History returns a person's choices, newest first.
func (c *Client) History(ctx context.Context, principalID string, page Page) (History, error) {
	if hint := rules.Principal(principalID); hint != "" {
		return History{}, hinted("History", KindInvalidRequest, hint)
	}
	body := ofPrincipal{principalID, page.Cursor, page.Limit}
	return fetch(ctx, c, c.post("History", "/v1/consent/history", body, principalID), readHistory)
}

// Sessions creates tokens of a client.
type Sessions struct{ client *Client }

// Create returns a token for one person, valid for at most 15 minutes. Give it only to that person's browser.
func (s *Sessions) Create(ctx context.Context, principalID string) (Session, error) {
	if hint := rules.Principal(principalID); hint != "" {
		return Session{}, hinted("Sessions.Create", KindInvalidRequest, hint)
	}
	request := s.client.post("Sessions.Create", "/v1/sessions", ofPrincipal{PrincipalID: principalID}, principalID)
	request.statuses, request.timeout = []int{http.StatusCreated}, s.client.settings.writeTimeout
	return fetch(ctx, s.client, request, readSession)
}

// Receipt returns a signed copy of an entry, for the person it is about.
func (c *Client) Receipt(ctx context.Context, seq int64) (Receipt, error) {
	if hint := rules.Seq(seq); hint != "" {
		return Receipt{}, hinted("Receipt", KindInvalidRequest, hint)
	}
	return fetch(ctx, c, c.get("Receipt", "/v1/consent/receipts/"+strconv.FormatInt(seq, 10)), readReceipt)
}

// Proof returns the proof of an entry as text, for VerifyProof or an auditor.
func (c *Client) Proof(ctx context.Context, seq int64) (string, error) {
	if hint := rules.Seq(seq); hint != "" {
		return "", hinted("Proof", KindInvalidRequest, hint)
	}
	request := c.get("Proof", "/v1/consent/proofs/"+strconv.FormatInt(seq, 10))
	request.accept = "text/plain"
	got, err := c.sender.send(ctx, request)
	if err != nil {
		return "", err
	}
	if got.body == nil {
		return "", malformed(request, got)
	}
	return string(got.body), nil
}

// Decision returns the verdict of a visit. A browser must not deliver its own verdict.
func (c *Client) Decision(ctx context.Context, requestID string) (Verdict, error) {
	if hint := rules.RequestID(requestID); hint != "" {
		return Verdict{}, hinted("Decision", KindInvalidRequest, hint)
	}
	return fetch(ctx, c, c.get("Decision", "/v1/decisions/"+requestID), func(f *fields) Verdict {
		verdict := readVerdict(f)
		f.require(verdict.RequestID == requestID)
		return verdict
	})
}

// ReportOutcome reports the outcome of a decision once. Repeating it changes nothing; a different outcome is a conflict.
func (c *Client) ReportOutcome(ctx context.Context, requestID string, report OutcomeReport) (ReportedOutcome, error) {
	const name = "ReportOutcome"
	if hint := rules.Report(requestID, report.Outcome); hint != "" {
		return ReportedOutcome{}, hinted(name, KindInvalidRequest, hint)
	}
	request := c.post(name, "/v1/decisions/"+requestID+"/outcome", report)
	request.statuses, request.timeout = []int{http.StatusOK, http.StatusCreated}, c.settings.writeTimeout
	return fetch(ctx, c, request, func(f *fields) ReportedOutcome {
		stored := readOutcome(f)
		f.require(stored.RequestID == requestID && stored.Outcome == report.Outcome)
		return stored
	})
}

// Ping succeeds if the server answers; the key is not checked.
func (c *Client) Ping(ctx context.Context) (Health, error) {
	request := c.get("Ping", "/healthz")
	request.isOpen = true
	return fetch(ctx, c, request, readHealth)
}
