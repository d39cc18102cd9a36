package dev.gpd.consent;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** Validates the part of JSON Schema that schema.json uses; an unknown keyword is a problem too. */
final class Schema {
  final List<String> problems = new ArrayList<>();
  private final Map<String, Object> definitions;

  Schema(Map<String, Object> definitions) {
    this.definitions = definitions;
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> fields(Object value) {
    return value instanceof Map<?, ?> ? (Map<String, Object>) value : Map.of();
  }

  static List<?> items(Object value) {
    return value instanceof List<?> list ? list : List.of();
  }

  static String typeOf(Object value) {
    if (value == null) return "null";
    if (value instanceof Boolean) return "boolean";
    if (value instanceof String) return "string";
    if (value instanceof List<?>) return "array";
    if (value instanceof Map<?, ?>) return "object";
    return value instanceof Double number && number == Math.rint(number) ? "integer" : "number";
  }

  private void unless(boolean holds, String at, String problem) {
    if (!holds) problems.add(at + ": " + problem);
  }

  void check(Object value, Object schema, String at) {
    if (schema instanceof Boolean isTaken) {
      unless(isTaken, at, "must not be there");
      return;
    }
    unless(schema instanceof Map<?, ?>, at, "there is no schema");
    fields(schema).forEach((keyword, rule) -> keyword(keyword, rule, value, fields(schema), at));
  }

  private void keyword(String keyword, Object rule, Object value, Map<String, Object> beside, String at) {
    switch (keyword) {
      case "$schema", "title", "description", "$defs", "then", "else" -> {}
      case "$ref" -> check(value, definitions.get(rule.toString().replace("#/$defs/", "")), at);
      case "type" -> {
        List<?> types = rule instanceof List<?> several ? several : List.of(rule);
        unless(types.contains(typeOf(value)), at, "is " + typeOf(value));
      }
      case "enum" -> unless(items(rule).contains(value), at, "is none of the words");
      case "const" -> unless(rule.equals(value), at, "is not what it must be");
      case "pattern" ->
          unless(value instanceof String text && Pattern.compile(rule.toString()).matcher(text).find(), at, "does not match");
      case "minItems" -> unless(value instanceof List<?> list && list.size() >= (Double) rule, at, "is too short");
      case "items" -> {
        for (int i = 0; i < items(value).size(); i++) check(items(value).get(i), rule, at + "[" + i + "]");
      }
      case "required" -> {
        for (Object name : items(rule)) unless(fields(value).containsKey(name), at, name + " is missing");
      }
      case "properties" ->
          fields(value)
              .forEach(
                  (name, inner) -> {
                    if (fields(rule).containsKey(name)) check(inner, fields(rule).get(name), at + "." + name);
                  });
      case "additionalProperties" ->
          fields(value)
              .forEach(
                  (name, inner) -> {
                    if (!fields(beside.get("properties")).containsKey(name)) check(inner, rule, at + "." + name);
                  });
      case "allOf" -> items(rule).forEach(inner -> check(value, inner, at));
      case "if" -> {
        Schema trial = new Schema(definitions);
        trial.check(value, rule, at);
        String branch = trial.problems.isEmpty() ? "then" : "else";
        if (beside.containsKey(branch)) check(value, beside.get(branch), at);
      }
      default -> unless(false, at, "the schema has the unknown keyword " + keyword);
    }
  }
}
