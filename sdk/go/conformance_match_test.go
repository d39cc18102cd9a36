package consent_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// Substitutes variables and compares results, as conformance/README.md says. A difference is a text; '' means none.

var (
	variable    = regexp.MustCompile(`\$\{(\w+)\}`)
	oneVariable = regexp.MustCompile(`^\$\{(\w+)\}$`)
)

// substitute panics for an unknown name, which the runner turns into a failure.
func substitute(value any, variables object) any {
	lookup := func(name string) any {
		found, isThere := variables[name]
		if !isThere {
			panic("there is no variable " + name)
		}
		return found
	}
	switch of := value.(type) {
	case string:
		if whole := oneVariable.FindStringSubmatch(of); whole != nil {
			return lookup(whole[1])
		}
		return variable.ReplaceAllStringFunc(of, func(found string) string {
			return fmt.Sprint(lookup(strings.Trim(found, "${}")))
		})
	case []any:
		list := make([]any, len(of))
		for i, item := range of {
			list[i] = substitute(item, variables)
		}
		return list
	case object:
		if repeated, isRepeat := of["$repeat"].([]any); isRepeat && len(of) == 1 {
			list := make([]any, int(repeated[1].(float64)))
			for i := range list {
				list[i] = substitute(repeated[0], variables)
			}
			return list
		}
		copied := object{}
		for name, inner := range of {
			copied[name] = substitute(inner, variables)
		}
		return copied
	}
	return value
}

func show(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

func matchMatcher(actual any, name string, rule any, at string) string {
	holds := false
	switch name {
	case "$match":
		text, isText := actual.(string)
		holds = isText && regexp.MustCompile(rule.(string)).MatchString(text)
	case "$type":
		if !contains([]any{"string", "integer", "boolean"}, rule) {
			panic("there is no type " + show(rule))
		}
		holds = typeOf(actual) == rule
	case "$includes":
		list, _ := actual.([]any)
		for _, item := range list {
			holds = holds || difference(item, rule, at, false) == ""
		}
	default:
		panic("there is no matcher " + name)
	}
	if holds {
		return ""
	}
	return fmt.Sprintf("%s: %s is not %s %s", at, show(actual), name, show(rule))
}

// difference returns the first difference; with exact an object may have no unexpected field.
func difference(actual, expected any, at string, exact bool) string {
	switch of := expected.(type) {
	case []any:
		list, isList := actual.([]any)
		if !isList || len(list) != len(of) {
			return fmt.Sprintf("%s: %s is no list of %d", at, show(actual), len(of))
		}
		for i, item := range of {
			if found := difference(list[i], item, fmt.Sprintf("%s[%d]", at, i), exact); found != "" {
				return found
			}
		}
		return ""
	case object:
		for name, rule := range of {
			if len(of) == 1 && strings.HasPrefix(name, "$") {
				return matchMatcher(actual, name, rule, at)
			}
		}
		return differentFields(actual, of, at, exact)
	}
	if reflect.DeepEqual(actual, expected) {
		return ""
	}
	return fmt.Sprintf("%s: %s, expected %s", at, show(actual), show(expected))
}

func differentFields(actual any, expected object, at string, exact bool) string {
	fields, isObject := actual.(object)
	if !isObject {
		return fmt.Sprintf("%s: %s is no object", at, show(actual))
	}
	for name := range fields {
		if _, isExpected := expected[name]; exact && !isExpected {
			return fmt.Sprintf("%s: %s must not be there", at, name)
		}
	}
	for name, value := range expected {
		if found := difference(fields[name], value, at+"."+name, exact); found != "" {
			return found
		}
	}
	return ""
}

func within(value float64, bounds any) bool {
	limits, _ := bounds.(object)
	lower, hasLeast := limits["min"].(float64)
	upper, hasMost := limits["max"].(float64)
	return (!hasLeast || value >= lower) && (!hasMost || value <= upper)
}
