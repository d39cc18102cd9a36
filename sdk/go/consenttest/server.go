package consenttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/internal/visitor"
)

var genesis = consent.ProofRef{Hash: strings.Repeat("0", 2*sha256.Size)}

// server answers the requests of the fake as a gpd would that holds what the fake was told.
type server struct {
	mutex         sync.Mutex
	now           func() time.Time
	signer        *signer
	calls         []Call
	log           fakeLog
	verdicts      map[string]map[string]any
	outcomes      map[string]consent.ReportedOutcome
	policies      []consent.Policy
	sessions      map[string]string
	agent         consent.AgentAnswer
	isUnavailable bool
	nextKind      consent.Kind
	nextCode      string
}

func newServer() *server {
	s := &server{
		now: time.Now, signer: newSigner(), verdicts: map[string]map[string]any{},
		agent:    consent.AgentAnswer{Status: "unverified", Reason: "key-set-unknown"},
		outcomes: map[string]consent.ReportedOutcome{}, sessions: map[string]string{}, policies: []consent.Policy{},
	}
	s.log = newFakeLog(func() time.Time { return s.now() })
	return s
}

func (s *server) clock() time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.now()
}

// Record notes a call of the client.
func (s *server) Record(method string, args []any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls = append(s.calls, Call{method, args})
}

// RoundTrip answers without a network.
func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var body []byte
	if request.Body != nil {
		body, _ = io.ReadAll(request.Body)
	}
	kind, code := s.nextKind, s.nextCode
	s.nextKind, s.nextCode = "", ""
	if s.isUnavailable || kind == consent.KindNetwork {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	status, answer := http.StatusOK, any(nil)
	if kind != "" {
		status, answer = statusOf[kind], map[string]string{"error": code}
	} else {
		var err error
		answer, err = s.answer(request, body)
		refused, isRefused := err.(refusal)
		switch {
		case isRefused:
			status, answer = refused.status, map[string]string{"error": refused.code}
		case request.Method == http.MethodPost && isCreating[request.URL.Path]:
			status = http.StatusCreated
		}
	}
	// Values of this package cannot fail to encode.
	text, _ := json.Marshal(answer)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: request}, nil
}

var isCreating = map[string]bool{
	"/v1/consent/grant": true, "/v1/consent/deny": true, "/v1/consent/withdraw": true, "/v1/sessions": true,
	"/v1/principals/join": true, "/v1/principals/link": true, "/v1/consent/policies": true,
}

func read[T any](body []byte) T {
	var value T
	_ = json.Unmarshal(body, &value)
	return value
}

// agentAsWire has null for what is empty.
func agentAsWire(answer consent.AgentAnswer) map[string]any {
	wire := map[string]any{"status": answer.Status, "expires": nil}
	if answer.Expires != 0 {
		wire["expires"] = answer.Expires
	}
	texts := map[string]string{"agent": answer.Agent, "keyid": answer.KeyID, "tag": answer.Tag, "intent": answer.Intent, "reason": answer.Reason}
	for name, value := range texts {
		wire[name] = nil
		if value != "" {
			wire[name] = value
		}
	}
	return wire
}

func (s *server) answer(request *http.Request, body []byte) (any, error) {
	of := read[struct {
		PrincipalID, Purpose, State, Token, Cursor string
		GPC                                        bool
		Limit                                      *int
		Checks                                     []struct{ ID, PrincipalID, Purpose string }
	}](body)
	path := strings.TrimPrefix(request.URL.Path, "/v1/")
	switch path {
	case "consent/can-process":
		return s.log.decide(of.PrincipalID, of.Purpose), nil
	case "consent/can-process/batch":
		type result struct {
			ID string `json:"id"`
			consent.Decision
		}
		results := []result{}
		for _, one := range of.Checks {
			results = append(results, result{one.ID, s.log.decide(one.PrincipalID, one.Purpose)})
		}
		return map[string]any{"results": results}, nil
	case "agents/verify":
		return agentAsWire(s.agent), nil
	case "consent/grant", "consent/deny", "consent/withdraw":
		write := read[consent.Write](body)
		write.IdempotencyKey = request.Header.Get("Idempotency-Key")
		return s.log.write(strings.TrimPrefix(path, "consent/"), write)
	case "consent/state":
		state := s.log.state(of.PrincipalID)
		state.Subject = subjectOf(of.PrincipalID)
		return state, nil
	case "consent/history":
		limit := 50
		if of.Limit != nil {
			limit = *of.Limit
		}
		return s.log.history(of.PrincipalID, of.Cursor, limit)
	case "consent/state-keys":
		return s.signer.jwks(), nil
	case "consent/state/refresh":
		return s.refresh(of.State, of.GPC)
	case "sessions":
		token := fmt.Sprint("gpd_ps_fake", len(s.calls))
		s.sessions[token] = of.PrincipalID
		expires := s.log.timeText(s.now().Add(15 * time.Minute))
		return consent.Session{Token: token, PrincipalID: of.PrincipalID, ExpiresAt: expires, Subject: subjectOf(of.PrincipalID)}, nil
	case "principals/join", "principals/link", "principals/erase":
		return s.ofPerson(request, path, of.PrincipalID, of.Token)
	case "consent/purposes":
		return s.purposes(request.Method, body)
	case "consent/policies":
		return s.policy(request.Method, body), nil
	}
	if strings.HasPrefix(path, "decisions/") {
		return s.verdict(strings.Split(path, "/"), body)
	}
	if request.URL.Path == "/healthz" {
		return consent.Health{Status: "ok", Version: "fake " + consent.Version}, nil
	}
	// The fake has no log that could be proven.
	return nil, refusal{http.StatusNotFound, "not-found"}
}

func (s *server) sign(principalID string, gpc bool) map[string]any {
	purposes, seq := s.log.visitorState(principalID, gpc)
	return map[string]any{"state": s.signer.sign(principalID, purposes, seq, s.now()), "purposes": purposes, "seq": seq}
}

func (s *server) refresh(text string, gpc bool) (any, error) {
	signed := visitor.Parse(text)
	if signed != nil {
		if principalID, ok := s.signer.principals[signed.Subject]; ok {
			if current := s.sign(principalID, gpc); current["seq"] != int64(0) {
				return current, nil
			}
		}
	}
	// gpd does not know a person who has never chosen.
	return nil, refusal{http.StatusNotFound, "no-data"}
}

func (s *server) ofPerson(request *http.Request, path, principalID, token string) (any, error) {
	person, ok := s.sessions[strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")]
	if _, isKnown := s.verdicts[token]; !ok || (path == "principals/link" && !isKnown) {
		return nil, refusal{http.StatusUnauthorized, "unauthenticated"}
	}
	switch path {
	case "principals/join":
		s.log.accounts[principalID] = person
		return consent.Join{PrincipalID: person, Joined: principalID, JoinedAt: s.now()}, nil
	case "principals/link":
		return consent.Link{PrincipalID: person, RequestID: token, LinkedAt: s.now()}, nil
	}
	scope := consent.ErasureScope{Scope: "consent", Action: "none", Count: int64(s.log.erase(person))}
	if scope.Count > 0 {
		scope.Action = "erased"
	}
	return consent.ErasureReceipt{
		ReceiptID: fmt.Sprint("era_fake", len(s.calls)), Tenant: tenant, Subject: subjectOf(person), RequestedBy: "subject",
		ErasedAt: s.now(), Scopes: []consent.ErasureScope{scope},
	}, nil
}

func (s *server) purposes(method string, body []byte) (any, error) {
	if method == http.MethodPut {
		for _, one := range read[struct{ Purposes []consent.PurposeDefinition }](body).Purposes {
			if !purposeID.MatchString(one.ID) {
				return nil, refusal{http.StatusBadRequest, "invalid-request"}
			}
			if one.TTLDays == 0 {
				one.TTLDays = 180
			}
			s.log.ttlDays[one.ID], s.log.policies[one.ID] = float64(one.TTLDays), GPCPolicy(one.GPC)
			if s.log.purposes == nil || !s.log.isKnown(one.ID) {
				s.log.purposes = append(s.log.purposes, one.ID)
			}
		}
	}
	purposes := []consent.Purpose{}
	for _, id := range s.log.purposes {
		purpose := consent.Purpose{ID: id, Title: id, LawfulBasis: "consent", GPC: "opt-out", TTLDays: 180, Banner: true}
		if policy := s.log.policies[id]; policy != "" {
			purpose.GPC = string(policy)
		}
		if days, ok := s.log.ttlDays[id]; ok {
			purpose.TTLDays = int64(days)
		}
		purposes = append(purposes, purpose)
	}
	return consent.SavedPurposes{Purposes: purposes, Entries: []consent.ProofRef{}}, nil
}

func (s *server) policy(method string, body []byte) any {
	if method == http.MethodGet {
		return consent.Policies{Policies: s.policies}
	}
	sent := read[consent.Policy](body)
	digest := sha256.Sum256([]byte(sent.Text))
	s.log.policyVersion = int64(len(s.policies)) + 1
	sent.Version, sent.SHA256, sent.PublishedAt = s.log.policyVersion, hex.EncodeToString(digest[:]), s.now()
	if sent.Material {
		s.log.material = s.log.policyVersion
	}
	s.policies = append(s.policies, sent)
	ref := s.log.nextRef()
	return consent.PublishedPolicy{
		Version: sent.Version, SHA256: sent.SHA256, Material: sent.Material, PublishedAt: sent.PublishedAt, Seq: ref.Seq, Hash: ref.Hash,
	}
}

func (s *server) wireOf(requestID string, verdict consent.Verdict) map[string]any {
	wire := map[string]any{
		"class": "human", "reason": "ok", "decidedAt": s.log.timeText(s.now()), "visitorId": verdict.VisitorID,
		"confidence": verdict.Confidence, "suspectScore": verdict.SuspectScore, "restricted": verdict.Restricted, "ref": verdict.Ref,
	}
	for name, value := range verdict.Fields {
		wire[name] = value
	}
	for name, value := range map[string]string{"class": verdict.Class, "reason": verdict.Reason, "decidedAt": verdict.DecidedAt} {
		if value != "" {
			wire[name] = value
		}
	}
	if verdict.Attested != nil {
		wire["attested"] = map[string]any{"by": verdict.Attested.By, "deviceBound": verdict.Attested.DeviceBound}
	}
	wire["requestId"] = requestID
	return wire
}

// verdict returns the verdict of a request, or stores its outcome. Times are compared as texts.
func (s *server) verdict(path []string, body []byte) (any, error) {
	verdict, ok := s.verdicts[path[1]]
	if !ok {
		return nil, refusal{http.StatusNotFound, "no-such-decision"}
	}
	if len(path) == 2 {
		return verdict, nil
	}
	report := read[consent.OutcomeReport](body)
	stored, ok := s.outcomes[path[1]]
	if !ok {
		stored = consent.ReportedOutcome{RequestID: path[1], Outcome: report.Outcome, At: report.At}
		if report.At == "" {
			stored.At = s.log.timeText(s.now())
		}
		s.outcomes[path[1]] = stored
	}
	if stored.Outcome != report.Outcome || (report.At != "" && stored.At != report.At) {
		return nil, refusal{http.StatusConflict, "idempotency-conflict"}
	}
	return stored, nil
}
