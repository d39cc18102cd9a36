package consent_test

import (
	"encoding/json"
	"testing"
)

// checkRequests compares the recorded requests with the case.
func checkRequests(t *testing.T, requests []any, expected object) {
	t.Helper()
	connections := map[any]bool{}
	for _, item := range requests {
		connections[item.(object)["connection"]] = true
	}
	if count, ok := expected["count"].(float64); ok && float64(len(requests)) != count {
		t.Fatalf("%d requests came, expected were %v", len(requests), count)
	}
	if !within(float64(len(connections)), expected["connections"]) {
		t.Fatalf("%d connections were used, expected were %s", len(connections), show(expected["connections"]))
	}
	if rule, ok := expected["idempotencyKey"].(string); ok {
		checkKeys(t, requests, rule)
	}
	if each, ok := expected["each"].(object); ok {
		for _, item := range requests {
			checkRequest(t, item.(object), each)
		}
	}
	if inOrder, ok := expected["inOrder"].([]any); ok {
		if len(requests) != len(inOrder) {
			t.Fatalf("%d requests came, expected were %d", len(requests), len(inOrder))
		}
		for i, item := range inOrder {
			checkRequest(t, requests[i].(object), item.(object))
		}
	}
	gaps, _ := expected["gapsMs"].([]any)
	for i, bounds := range gaps {
		if i+1 >= len(requests) {
			t.Fatalf("there is no request after %d", i)
		}
		gap := requests[i+1].(object)["atMs"].(float64) - requests[i].(object)["atMs"].(float64)
		if !within(gap, bounds) {
			t.Fatalf("%v ms lay between request %d and the next", gap, i)
		}
	}
}

func checkRequest(t *testing.T, request, each object) {
	t.Helper()
	rest := object{}
	for name, value := range each {
		if name != "absentHeaders" && name != "body" {
			rest[name] = value
		}
	}
	if found := difference(request, rest, "request", false); found != "" {
		t.Fatal(found)
	}
	if body, ok := each["body"]; ok {
		var sent any
		if err := json.Unmarshal([]byte(request["body"].(string)), &sent); err != nil {
			t.Fatal(err)
		}
		if found := difference(sent, body, "request.body", true); found != "" {
			t.Fatal(found)
		}
	}
	absent, _ := each["absentHeaders"].([]any)
	for _, name := range absent {
		if _, isThere := request["headers"].(object)[name.(string)]; isThere {
			t.Fatalf("the request has %s", name)
		}
	}
}

func checkKeys(t *testing.T, requests []any, rule string) {
	t.Helper()
	keys := map[any]bool{}
	count := 0
	for _, item := range requests {
		if key, isThere := item.(object)["headers"].(object)["idempotency-key"]; isThere {
			keys[key] = true
			count++
		}
	}
	isAll := count == len(requests)
	holds := map[string]bool{
		"none":     count == 0,
		"one":      isAll && len(keys) == 1,
		"distinct": isAll && len(keys) == count,
	}
	if !holds[rule] {
		t.Fatalf("Idempotency-Key: expected was %s, there were %d, %d different", rule, count, len(keys))
	}
}
