package consent_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Validates the part of JSON Schema that schema.json uses; an unknown keyword is a problem too.

type object = map[string]any

type schemaCheck struct {
	definitions object
	problems    []string
}

func (s *schemaCheck) unless(holds bool, at, why string) {
	if !holds {
		s.problems = append(s.problems, at+": "+why)
	}
}

func typeOf(value any) string {
	switch one := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case object:
		return "object"
	case float64:
		if one == math.Trunc(one) {
			return "integer"
		}
	}
	return "number"
}

func contains(list []any, wanted any) bool {
	for _, item := range list {
		if reflect.DeepEqual(item, wanted) {
			return true
		}
	}
	return false
}

func (s *schemaCheck) check(value, schema any, at string) {
	switch of := schema.(type) {
	case bool:
		s.unless(of, at, "must not be there")
	case object:
		for keyword, rule := range of {
			s.keyword(keyword, rule, value, of, at)
		}
	default:
		s.unless(false, at, "there is no schema")
	}
}

func (s *schemaCheck) keyword(keyword string, rule, value any, beside object, at string) {
	fields, _ := value.(object)
	items, isList := value.([]any)
	switch keyword {
	case "$schema", "title", "description", "$defs", "then", "else":
	case "$ref":
		s.check(value, s.definitions[strings.TrimPrefix(rule.(string), "#/$defs/")], at)
	case "type":
		types, isSeveral := rule.([]any)
		if !isSeveral {
			types = []any{rule}
		}
		s.unless(contains(types, typeOf(value)), at, "is "+typeOf(value))
	case "enum":
		s.unless(contains(rule.([]any), value), at, "is none of the words")
	case "const":
		s.unless(reflect.DeepEqual(rule, value), at, "is not what it must be")
	case "pattern":
		text, isText := value.(string)
		s.unless(isText && regexp.MustCompile(rule.(string)).MatchString(text), at, "does not match")
	case "minItems":
		s.unless(isList && float64(len(items)) >= rule.(float64), at, "is too short")
	case "items":
		for i, item := range items {
			s.check(item, rule, fmt.Sprintf("%s[%d]", at, i))
		}
	case "required":
		for _, name := range rule.([]any) {
			_, isThere := fields[name.(string)]
			s.unless(isThere, at, name.(string)+" is missing")
		}
	case "properties", "additionalProperties":
		s.fields(keyword, rule, fields, beside, at)
	case "allOf":
		for _, inner := range rule.([]any) {
			s.check(value, inner, at)
		}
	case "if":
		trial := schemaCheck{definitions: s.definitions}
		trial.check(value, rule, at)
		branch, isThere := beside["then"]
		if len(trial.problems) > 0 {
			branch, isThere = beside["else"]
		}
		if isThere {
			s.check(value, branch, at)
		}
	default:
		s.unless(false, at, "the schema has the unknown keyword "+keyword)
	}
}

func (s *schemaCheck) fields(keyword string, rule any, fields, beside object, at string) {
	named, _ := beside["properties"].(object)
	for name, value := range fields {
		schema, isNamed := named[name]
		switch {
		case keyword == "properties" && isNamed:
			s.check(value, schema, at+"."+name)
		case keyword == "additionalProperties" && !isNamed:
			s.check(value, rule, at+"."+name)
		}
	}
}

func readShared(t *testing.T, name string) object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "conformance", name))
	if err != nil {
		t.Fatal(err)
	}
	var value object
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// problemsOf returns the violations of the schema in the whole file, and names that two cases share.
func problemsOf(t *testing.T, file object) []string {
	t.Helper()
	schema := readShared(t, "schema.json")
	check := schemaCheck{definitions: schema["$defs"].(object)}
	check.check(file, schema, "cases")
	seen := map[any]bool{}
	for _, one := range file["cases"].([]any) {
		name := one.(object)["name"]
		check.unless(!seen[name], fmt.Sprint(name), "is there twice")
		seen[name] = true
	}
	return check.problems
}
