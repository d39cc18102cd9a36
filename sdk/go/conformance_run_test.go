package consent_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	consent "gpd.dev/consent-go"
	"gpd.dev/consent-go/consenttest"
)

// Runs one case.

type run struct {
	client    consent.Consent
	variables object
	// now is the clock of the client during the next call.
	now func() time.Time
	// hidden has texts that no error may contain.
	hidden []string
}

// useFake takes a fake with the purposes of the conformance server.
func (r *run) useFake(onUnavailable consent.OnUnavailable) {
	fake := consenttest.NewWith(onUnavailable)
	fake.SetNow(func() time.Time { return r.now() })
	fake.SetGPCPolicy("support", consenttest.GPCIgnore)
	fake.SetGPCPolicy("offers", consenttest.GPCAsk)
	r.client = fake
}

func randomHex() string {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err)
	}
	return hex.EncodeToString(b[:])
}

func (s servers) variables(one object, base string) object {
	name := "secret"
	if client, ok := one["client"].(object); ok && client["key"] != nil {
		name = client["key"].(string)
	}
	of := object{
		"principal":      "käthe+" + randomHex() + "@shop.example",
		"principal2":     "käthe+" + randomHex() + "@shop.example",
		"plainPrincipal": "u" + randomHex(),
		"unique":         randomHex(),
		"url":            base,
		"key":            s.Keys[name],
		"publishableKey": s.Keys["publishable"],
		"vkey":           s.VKey,
		"requestId":      s.RequestID,
	}
	for name, value := range s.Variables {
		of[name] = value
	}
	return of
}

// talk sends a request to the stub, without the client under test.
func talk(t *testing.T, method, address string, body any) []any {
	t.Helper()
	request, err := http.NewRequest(method, address, strings.NewReader(show(body)))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	told, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode > 299 {
		t.Fatalf("the stub answered %d, %v", response.StatusCode, err)
	}
	var list []any
	// The answer to a script is an empty object, which is ignored.
	_ = json.Unmarshal(told, &list)
	return list
}

func runCase(t *testing.T, one object, of servers) {
	base := of.URL
	id := randomHex()
	if one["kind"] == "stub" {
		base = of.Stub + "/c/" + id
	}
	r := &run{}
	r.begin(of.variables(one, base))
	client, _ := one["client"].(object)
	if one["kind"] == "fake" {
		onUnavailable, isTold := client["onUnavailable"].(string)
		if !isTold {
			onUnavailable = "deny"
		}
		r.useFake(consent.OnUnavailable(onUnavailable))
	} else if one["kind"] != "pure" {
		options := object{"url": base, "key": r.variables["key"]}
		for name, value := range client {
			if name != "key" {
				options[name] = value
			}
		}
		if err := r.configure(options); err != nil {
			t.Fatal(err)
		}
	}
	if one["kind"] == "stub" {
		talk(t, http.MethodPut, of.Stub+"/script/"+id, substitute(one["script"], r.variables))
	}
	r.allSteps(t, one)
	if expected, ok := substitute(one["requests"], r.variables).(object); ok {
		checkRequests(t, talk(t, http.MethodGet, of.Stub+"/requests/"+id, nil), expected)
	}
	if one["fake"] == true {
		r.begin(of.variables(one, base))
		r.useFake(consent.DenyUnavailable)
		r.allSteps(t, one)
	}
}

func (r *run) begin(variables object) {
	r.variables, r.hidden = variables, nil
	for _, name := range []string{"principal", "principal2", "plainPrincipal", "key", "publishableKey"} {
		r.hidden = append(r.hidden, r.variables[name].(string))
	}
}

func (r *run) allSteps(t *testing.T, one object) {
	t.Helper()
	for i, item := range one["steps"].([]any) {
		r.steps(t, i, item.(object))
	}
	if r.client != nil {
		r.client.Close()
	}
}

func (r *run) steps(t *testing.T, i int, step object) {
	t.Helper()
	wait, _ := step["waitMs"].(float64)
	time.Sleep(time.Duration(wait) * time.Millisecond)
	times, isTold := step["times"].(float64)
	if !isTold {
		times = 1
	}
	for ; times > 0; times-- {
		if problem := r.step(step); problem != "" {
			t.Fatalf("step %d (%s): %s", i, step["call"], problem)
		}
	}
}

func (r *run) step(step object) (problem string) {
	defer func() {
		if reason := recover(); reason != nil {
			problem = fmt.Sprint(reason)
		}
	}()
	args := substitute(step["args"], r.variables).(object)
	options, _ := substitute(step["options"], r.variables).(object)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if ms, ok := options["timeoutMs"].(float64); ok {
		ctx = consent.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
	}
	if count, ok := step["cancelAfterRequests"].(float64); ok {
		came := fmt.Sprintf("%s/%.0f", strings.Replace(r.variables["url"].(string), "/c/", "/came/", 1), count)
		go func() {
			if response, err := http.Get(came); err == nil {
				response.Body.Close()
				cancel()
			}
		}()
	}
	r.now = clockOf(step)
	startedAt := time.Now()
	result, err := r.invoke(ctx, step["call"].(string), args, options)
	elapsed := float64(time.Since(startedAt)) / float64(time.Millisecond)
	expected := substitute(step["expect"], r.variables).(object)
	if problem := r.judge(result, err, expected); problem != "" {
		return problem
	}
	if !within(elapsed, expected["elapsedMs"]) {
		return fmt.Sprintf("it took %.0f ms, expected was %s", elapsed, show(expected["elapsedMs"]))
	}
	saved, _ := step["save"].(object)
	for name, path := range saved {
		value := result
		for _, part := range strings.Split(path.(string), ".") {
			if part != "" {
				value = value.(object)[part]
			}
		}
		r.variables[name] = value
	}
	return ""
}

// clockOf is the time of the step, or so much later than the time.
func clockOf(step object) func() time.Time {
	if now, ok := step["now"].(float64); ok {
		return func() time.Time { return time.Unix(int64(now), 0) }
	}
	later, _ := step["laterSeconds"].(float64)
	return func() time.Time { return time.Now().Add(time.Duration(later) * time.Second) }
}

func (r *run) judge(result any, err error, expected object) string {
	if err != nil {
		if problem := r.leak(err, expected["hides"]); problem != "" {
			return problem
		}
	}
	wanted, wantsError := expected["error"].(object)
	switch {
	case expected["cancelled"] == true:
		if !errors.Is(err, context.Canceled) {
			return fmt.Sprintf("cancelled, and it gave %v", err)
		}
		return ""
	case wantsError:
		return differentError(err, wanted)
	case err != nil:
		return err.Error()
	}
	if value, isTold := expected["result"]; isTold {
		return difference(result, value, "result", false)
	}
	return ""
}

func (r *run) leak(err error, more any) string {
	told := ""
	for one := err; one != nil; one = errors.Unwrap(one) {
		told += fmt.Sprintf("%v\n%+v\n%#v\n%s\n", one, one, one, show(one))
	}
	hidden := r.hidden
	list, _ := more.([]any)
	for _, text := range list {
		hidden = append(hidden[:len(hidden):len(hidden)], text.(string))
	}
	for _, text := range hidden {
		if strings.Contains(told, text) {
			return fmt.Sprintf("the error tells %s: %s", text, told)
		}
	}
	return ""
}

func differentError(err error, expected object) string {
	var failure *consent.Error
	if !errors.As(err, &failure) {
		return fmt.Sprintf("it gave %v, expected was a consent.Error", err)
	}
	facts := object{"kind": string(failure.Kind), "code": failure.Code, "detail": nil}
	if failure.Detail != "" {
		facts["detail"] = string(failure.Detail)
	}
	if failure.Status != 0 {
		facts["status"] = float64(failure.Status)
	}
	if failure.RequestID != "" {
		facts["requestId"] = failure.RequestID
	}
	if failure.RetryAfterSeconds != nil {
		facts["retryAfterSeconds"] = float64(*failure.RetryAfterSeconds)
	}
	return difference(facts, expected, "error", false)
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
