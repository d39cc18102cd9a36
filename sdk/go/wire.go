package consent

import (
	"encoding/json"
	"math"
	"regexp"
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

// fields reads an object of the wire; the first invalid field marks it as bad.
type fields struct {
	of  map[string]any
	bad bool
}

// inside reads a nested object, whose invalid fields make the whole bad.
func (f *fields) inside(value any) *fields {
	object, ok := value.(map[string]any)
	return &fields{of: object, bad: f.bad || !ok}
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

// optionalText reads a field that may be null or absent.
func (f *fields) optionalText(name string) *string {
	if f.of[name] == nil {
		return nil
	}
	value := f.text(name)
	return &value
}

// textOrNull reads a field that must be present.
func (f *fields) textOrNull(name string) *string {
	_, isThere := f.of[name]
	f.require(isThere)
	return f.optionalText(name)
}

func (f *fields) boolean(name string) bool {
	value, ok := f.of[name].(bool)
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

func (f *fields) optionalTrue(name string) bool {
	value, _ := f.of[name].(bool)
	return value
}

func (f *fields) optionalInteger(name string) *int64 {
	if f.of[name] == nil {
		return nil
	}
	value := f.integer(name)
	return &value
}

func (f *fields) seq(name string) int64 {
	value := f.integer(name)
	f.require(value >= 0)
	return value
}

func (f *fields) list(name string) []any {
	value, ok := f.of[name].([]any)
	f.require(ok)
	return value
}

func (f *fields) object(name string) map[string]any {
	value, ok := f.of[name].(map[string]any)
	f.require(ok)
	return value
}

func (f *fields) proofRef() ProofRef {
	hash := f.text("hash")
	f.require(hexHash.MatchString(hash))
	return ProofRef{Seq: f.seq("seq"), Hash: hash}
}
