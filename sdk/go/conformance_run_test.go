package consent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/consenttest"
)

// Makes the calls of a case. sdk/conformance/run-case.mjs names them and judges their outcomes.

type object = map[string]any

type run struct {
	client consent.Consent
	// now is the clock of the client during the next call.
	now func() time.Time
	// told is what errors that are part of a result print.
	told string
}

// step is the next call of a case, or its end.
type step struct {
	Run          string
	Done         bool
	Problem      string
	Call         string
	Args         object
	Options      object
	Now          *int64
	LaterSeconds int64
	CancelWhen   string
}

// post sends the outcome of a call to the runner, without the client under test.
func post(t *testing.T, address string, outcome object) (next step) {
	t.Helper()
	response, err := http.Post(address, "application/json", strings.NewReader(show(outcome)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&next); err != nil {
		t.Fatal(response.Status, err)
	}
	return next
}

func runCase(t *testing.T, name string, of servers) {
	r := &run{}
	next := post(t, of.Runs+"/"+name, object{})
	for !next.Done {
		next = post(t, of.Runs+"/"+next.Run, r.perform(next))
	}
	if r.client != nil {
		r.client.Close()
	}
	if next.Problem != "" {
		t.Fatal(next.Problem)
	}
}

func (r *run) perform(next step) (outcome object) {
	defer func() {
		if reason := recover(); reason != nil {
			outcome = object{"problem": fmt.Sprint(reason)}
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if ms, ok := next.Options["timeoutMs"].(float64); ok {
		ctx = consent.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
	}
	if next.CancelWhen != "" {
		go func() {
			if response, err := http.Get(next.CancelWhen); err == nil {
				response.Body.Close()
				cancel()
			}
		}()
	}
	r.now = func() time.Time { return time.Now().Add(time.Duration(next.LaterSeconds) * time.Second) }
	if next.Now != nil {
		r.now = func() time.Time { return time.Unix(*next.Now, 0) }
	}
	r.told = ""
	startedAt := time.Now()
	result, err := r.invoke(ctx, next.Call, next.Args, next.Options)
	elapsed := float64(time.Since(startedAt)) / float64(time.Millisecond)
	outcome = object{"result": result}
	if err != nil {
		r.told += told(err)
		outcome = failureOf(err)
	}
	outcome["printed"], outcome["elapsedMs"] = r.told, elapsed
	return outcome
}

// told returns all that an error and its causes print.
func told(err error) (text string) {
	for one := err; one != nil; one = errors.Unwrap(one) {
		text += fmt.Sprintf("%v\n%+v\n%#v\n%s\n", one, one, one, show(one))
	}
	return text
}

func failureOf(err error) object {
	var failure *consent.Error
	if errors.Is(err, context.Canceled) {
		return object{"cancelled": true}
	}
	if !errors.As(err, &failure) {
		return object{"problem": err.Error()}
	}
	facts := object{"kind": failure.Kind, "code": failure.Code, "retryAfterSeconds": failure.RetryAfterSeconds}
	if failure.Detail != "" {
		facts["detail"] = failure.Detail
	}
	if failure.Status != 0 {
		facts["status"] = failure.Status
	}
	if failure.RequestID != "" {
		facts["requestId"] = failure.RequestID
	}
	return object{"error": facts}
}

// useFake takes a fake with the purposes of the conformance server.
func (r *run) useFake(args object) {
	onUnavailable, isTold := args["onUnavailable"].(string)
	if !isTold {
		onUnavailable = "deny"
	}
	fake := consenttest.NewWith(consent.OnUnavailable(onUnavailable))
	fake.SetNow(func() time.Time { return r.now() })
	fake.SetGPCPolicy("support", consenttest.GPCIgnore)
	fake.SetGPCPolicy("offers", consenttest.GPCAsk)
	r.client = fake
}

func show(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

// asWire converts a result to the JSON of the wire, and decoded JSON to a Go type.
func asWire(from, to any) {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(text)).Decode(to)
	}
	if err != nil {
		panic(err)
	}
}
