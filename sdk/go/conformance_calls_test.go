package consent_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/consenttest"
)

// Translates the calls and arguments of a case to those of this package, and back.

func (r *run) configure(args object) error {
	options := consent.Options{Now: func() time.Time { return r.now() }}
	for name, value := range args {
		switch name {
		case "url":
			if text, ok := value.(string); ok {
				options.URL = text
			} else {
				asWire(value, &options.URLs)
			}
		case "key":
			options.Key = value.(string)
		case "timeoutMs":
			options.Timeout = time.Duration(value.(float64)) * time.Millisecond
		case "writeTimeoutMs":
			options.WriteTimeout = time.Duration(value.(float64)) * time.Millisecond
		case "retries":
			options.Retries = consent.Retries(int(value.(float64)))
		case "cookieDomain":
			options.CookieDomain = value.(string)
		case "onUnavailable":
			options.OnUnavailable = consent.OnUnavailable(value.(string))
		default:
			panic("there is no option " + name)
		}
	}
	client, err := consent.New(options)
	if err == nil {
		r.client = client
	}
	return err
}

func (r *run) fromEnv(args object) error {
	env, _ := args["env"].(object)
	client, err := consent.FromEnv(consent.Options{Getenv: func(name string) string {
		value, _ := env[name].(string)
		return value
	}})
	if err == nil {
		r.client = client
	}
	return err
}

func (r *run) invoke(ctx context.Context, name string, args, options object) (any, error) {
	result, err := r.call(ctx, name, args, options)
	if err != nil {
		return nil, err
	}
	switch of := result.(type) {
	case consent.Decision:
		r.checkDenial(of)
	case consent.Verdict:
		return verdictAsWire(of), nil
	case consent.CurrentState:
		return withoutCookie(of, of.SetCookie), nil
	case consent.Permissions:
		return withoutCookie(of, of.SetCookie), nil
	}
	var wire any
	asWire(result, &wire)
	return wire, nil
}

// withoutCookie turns an empty SetCookie into the null of the wire.
func withoutCookie(result any, setCookie string) object {
	var wire object
	asWire(result, &wire)
	if setCookie == "" {
		wire["setCookie"] = nil
	}
	return wire
}

// verdictAsWire returns all fields of the answer, with the typed value of Attested.
func verdictAsWire(verdict consent.Verdict) object {
	wire := object{}
	for name, value := range verdict.Fields {
		wire[name] = value
	}
	wire["attested"] = nil
	if verdict.Attested != nil {
		wire["attested"] = object{"by": verdict.Attested.By, "deviceBound": verdict.Attested.DeviceBound}
	}
	return wire
}

// checkDenial checks a denial by the SDK: it has an error, which is told as a returned one.
func (r *run) checkDenial(decision consent.Decision) {
	if (decision.Proof == nil) != (decision.Err != nil) {
		panic(fmt.Sprintf("a decision without proof has an error, and no other: %v", decision.Err))
	}
	r.told += told(decision.Err)
}

func (r *run) call(ctx context.Context, name string, args, options object) (any, error) {
	principalID, _ := args["principalId"].(string)
	seq, _ := args["seq"].(float64)
	switch name {
	case "isAllowed":
		return r.client.IsAllowed(ctx, checkOf(args))
	case "canProcess":
		return r.client.CanProcess(ctx, checkOf(args))
	case "canProcessMany":
		var checks []consent.Check
		asWire(args["checks"], &checks)
		return r.client.CanProcessMany(ctx, checks)
	case "grant":
		return r.client.Grant(ctx, writeOf(args, options))
	case "deny":
		return r.client.Deny(ctx, writeOf(args, options))
	case "withdraw":
		return r.client.Withdraw(ctx, writeOf(args, options))
	case "state":
		return r.client.State(ctx, principalID)
	case "history":
		var page consent.Page
		asWire(args, &page)
		return r.client.History(ctx, principalID, page)
	case "sessions.create":
		return r.client.CreateSession(ctx, principalID)
	case "historyAll":
		var page consent.Page
		asWire(args, &page)
		events, err := []consent.Event{}, error(nil)
		r.client.HistoryAll(ctx, principalID, page)(func(event consent.Event, failed error) bool {
			events, err = append(events, event), failed
			return failed == nil
		})
		return events, err
	case "join":
		var browser consent.BrowserPrincipal
		asWire(args, &browser)
		return r.client.Join(ctx, args["session"].(string), browser)
	case "link":
		return r.client.Link(ctx, args["session"].(string), args["token"].(string))
	case "erase":
		return r.client.Erase(ctx, args["session"].(string))
	case "purposes":
		return r.client.Purposes(ctx)
	case "savePurposes":
		var purposes []consent.PurposeDefinition
		asWire(args["purposes"], &purposes)
		material, _ := args["material"].(bool)
		return r.client.SavePurposes(ctx, purposes, &material)
	case "policies":
		return r.client.Policies(ctx)
	case "publishPolicy":
		return r.client.PublishPolicy(ctx, args["text"].(string), args["material"].(bool))
	case "checkpoint":
		return r.client.Checkpoint(ctx)
	case "vkey":
		return r.client.VKey(ctx)
	case "exportLog":
		return r.client.ExportLog(ctx)
	case "signWebhook":
		now := time.Unix(int64(args["now"].(float64)), 0)
		header, err := consent.SignWebhook([]byte(args["body"].(string)), args["secret"].(string), args["id"].(string), now)
		signed := object{}
		for name := range header {
			signed[strings.ToLower(name)] = header.Get(name)
		}
		return signed, err
	case "receipt":
		return r.client.Receipt(ctx, int64(seq))
	case "proof":
		return r.client.Proof(ctx, int64(seq))
	case "decision":
		return r.client.Decision(ctx, args["requestId"].(string))
	case "checkout":
		ms, _ := args["deadlineMs"].(float64)
		options := consent.CheckoutOptions{Deadline: time.Duration(ms) * time.Millisecond}
		options.Context, _ = args["context"].(string)
		return r.client.Checkout(ctx, args["requestId"].(string), options)
	case "reportOutcome":
		var report consent.OutcomeReport
		asWire(args, &report)
		return r.client.ReportOutcome(ctx, args["requestId"].(string), report)
	case "readState":
		cookie, _ := args["cookie"].(string)
		return r.client.ReadState(ctx, cookie)
	case "currentState":
		cookie, _ := args["cookie"].(string)
		return r.client.CurrentState(ctx, cookie)
	case "may":
		return r.may(ctx, args)
	case "agent":
		return r.agent(ctx, args)
	case "cookieFor":
		return r.client.(*consenttest.Fake).CookieFor(principalID), nil
	case "fake":
		r.useFake(args)
		return nil, nil
	case "fake.setUnavailable", "fake.setNextError", "fake.setTtlDays", "fake.setPurposes", "fake.setDecision":
		r.tellFake(name, args)
		return nil, nil
	case "ping":
		return r.client.Ping(ctx)
	case "close":
		return nil, r.client.Close()
	case "configure":
		return nil, r.configure(args)
	case "fromEnv":
		return nil, r.fromEnv(args)
	case "verifyProof":
		return verifyProof(args)
	case "verifyConsistency":
		return nil, verifyConsistency(args)
	case "verifyWebhook":
		return verifyWebhook(args)
	}
	panic("there is no call " + name)
}

func (r *run) agent(ctx context.Context, args object) (any, error) {
	request := httptest.NewRequest(args["method"].(string), args["url"].(string), nil)
	for name, value := range args["headers"].(object) {
		request.Header.Set(name, value.(string))
	}
	body, _ := args["body"].(string)
	answer, err := r.client.Agent(ctx, request, consent.AgentOptions{Body: []byte(body)})
	r.told += told(answer.Err)
	return answer, err
}

func (r *run) may(ctx context.Context, args object) (any, error) {
	request := &http.Request{Header: http.Header{}}
	for name, value := range args["headers"].(object) {
		request.Header.Set(name, value.(string))
	}
	ask := consent.Ask{}
	ask.PrincipalID, _ = args["principalId"].(string)
	asWire(args["purposes"], &ask.Purposes)
	return r.client.May(ctx, request, ask)
}

func (r *run) tellFake(name string, args object) {
	fake := r.client.(*consenttest.Fake)
	switch name {
	case "fake.setUnavailable":
		fake.SetUnavailable(args["unavailable"].(bool))
	case "fake.setNextError":
		code, _ := args["code"].(string)
		fake.SetNextError(consent.Kind(args["kind"].(string)), code)
	case "fake.setTtlDays":
		fake.SetTTLDays(args["purpose"].(string), args["days"].(float64))
	case "fake.setPurposes":
		var purposes []string
		asWire(args["purposes"], &purposes)
		fake.SetPurposes(purposes...)
	case "fake.setDecision":
		var verdict consent.Verdict
		verdict.Class, _ = args["class"].(string)
		if score, ok := args["suspectScore"].(float64); ok {
			verdict.SuspectScore = &score
		}
		fake.SetDecision(args["requestId"].(string), verdict)
	}
}

func checkOf(args object) consent.Check {
	var check consent.Check
	asWire(args, &check)
	return check
}

func writeOf(args, options object) consent.Write {
	var write consent.Write
	asWire(args, &write)
	write.IdempotencyKey, _ = options["idempotencyKey"].(string)
	return write
}

func verifyProof(args object) (any, error) {
	options := consent.ProofOptions{VKey: args["vkey"].(string)}
	options.Hash, _ = args["hash"].(string)
	options.Type, _ = args["type"].(string)
	options.Purpose, _ = args["purpose"].(string)
	if seq, ok := args["seq"].(float64); ok {
		whole := int64(seq)
		options.Seq = &whole
	}
	asWire(args["witnesses"], &options.Witnesses)
	if minWitnesses, ok := args["minWitnesses"].(float64); ok {
		options.MinWitnesses = int(minWitnesses)
		if minWitnesses == 0 {
			// In Go 0 means "all", so an invalid 0 of the case becomes -1.
			options.MinWitnesses = -1
		}
	}
	return consent.VerifyProof(args["proof"].(string), options)
}

func verifyConsistency(args object) error {
	var proof []string
	asWire(args["proof"], &proof)
	oldSize, newSize := int64(args["oldSize"].(float64)), int64(args["newSize"].(float64))
	return consent.VerifyConsistency(oldSize, args["oldRoot"].(string), newSize, args["newRoot"].(string), proof)
}

func verifyWebhook(args object) (any, error) {
	header := http.Header{}
	for name, value := range args["headers"].(object) {
		header[name] = []string{value.(string)}
	}
	options := consent.WebhookOptions{Now: time.Unix(int64(args["now"].(float64)), 0)}
	asWire(args["secrets"], &options.Secrets)
	if seconds, ok := args["toleranceSeconds"].(float64); ok {
		options.Tolerance = time.Duration(seconds) * time.Second
	}
	return consent.VerifyWebhook([]byte(args["body"].(string)), header, options)
}
