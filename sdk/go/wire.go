package consent

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
)

// Answers are decoded into maps and not into structs: encoding/json ignores the case of keys and treats null as absent, so that
// {"Allowed": true} would allow.

const maxSafeInteger = 1<<53 - 1

var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parseObject returns nil unless the body is one JSON object; Unmarshal refuses text after the first value.
func parseObject(body []byte) map[string]any {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return nil
	}
	object, _ := value.(map[string]any)
	return object
}

// parseShape reads a shape: a word with |null behind it if the value may be null, a list of one shape, or fields, whose names end in ?
// if they may be absent.
func parseShape(text string) any {
	var shape any
	if json.Unmarshal([]byte(text), &shape) != nil {
		panic("consent: a shape is malformed")
	}
	return shape
}

// shaped returns the part of a value that its shape names; false if it does not match.
func shaped(value, shape any) (any, bool) {
	switch of := shape.(type) {
	case string:
		word := strings.TrimSuffix(of, "|null")
		return value, (value == nil && word != of) || isWord(value, word)
	case []any:
		items, ok := value.([]any)
		found := make([]any, len(items))
		for i := range items {
			var fits bool
			found[i], fits = shaped(items[i], of[0])
			ok = ok && fits
		}
		return found, ok
	}
	object, ok := value.(map[string]any)
	found := map[string]any{}
	for field, inner := range shape.(map[string]any) {
		name := strings.TrimSuffix(field, "?")
		one, isThere := object[name]
		if !isThere {
			ok = ok && name != field
			continue
		}
		var fits bool
		found[name], fits = shaped(one, inner)
		ok = ok && fits
	}
	return found, ok
}

func isWord(value any, word string) bool {
	f := &fields{of: map[string]any{"value": value}}
	switch word {
	case "string":
		f.text("value")
	case "hash":
		f.require(hexHash.MatchString(f.text("value")))
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "number":
		f.number("value")
	case "integer":
		f.integer("value")
	case "seq":
		f.require(f.integer("value") >= 0)
	default:
		_, ok := value.(map[string]any)
		return ok
	}
	return !f.bad
}

// fields reads an object of the wire; the first invalid field marks it as bad.
type fields struct {
	of  map[string]any
	bad bool
}

func (f *fields) require(holds bool) {
	if !holds {
		f.bad = true
	}
}

func (f *fields) text(name string) string {
	value, ok := f.of[name].(string)
	f.require(ok)
	return value
}

func (f *fields) number(name string) float64 {
	value, ok := f.of[name].(float64)
	f.require(ok)
	return value
}

func (f *fields) integer(name string) int64 {
	value := f.number(name)
	f.require(value == math.Trunc(value) && math.Abs(value) <= maxSafeInteger)
	return int64(value)
}

func (f *fields) object(name string) map[string]any {
	value, ok := f.of[name].(map[string]any)
	f.require(ok)
	return value
}
