package dev.gpd.consent;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Substitutes variables and compares results, as conformance/README.md says. */
final class Match {
  private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
  private static final Pattern VARIABLE = Pattern.compile("\\$\\{(\\w+)\\}");

  private Match() {}

  static Object json(String text) {
    return GSON.fromJson(text, Object.class);
  }

  static String show(Object value) {
    return GSON.toJson(value);
  }

  private static Object lookup(String name, Map<String, Object> variables) {
    if (!variables.containsKey(name)) throw new AssertionError("there is no variable " + name);
    return variables.get(name);
  }

  static Object substitute(Object value, Map<String, Object> variables) {
    if (value instanceof String text) {
      Matcher found = VARIABLE.matcher(text);
      if (found.matches()) return lookup(found.group(1), variables);
      return found.replaceAll(one -> Matcher.quoteReplacement(lookup(one.group(1), variables).toString()));
    }
    if (value instanceof List<?> list) return list.stream().map(item -> substitute(item, variables)).toList();
    if (!(value instanceof Map<?, ?>)) return value;
    Map<String, Object> fields = Schema.fields(value);
    if (fields.size() == 1 && fields.get("$repeat") instanceof List<?> repeated) {
      int times = ((Double) repeated.get(1)).intValue();
      return Collections.nCopies(times, substitute(repeated.get(0), variables));
    }
    Map<String, Object> copy = new LinkedHashMap<>();
    fields.forEach((name, inner) -> copy.put(name, substitute(inner, variables)));
    return copy;
  }

  private static boolean matcher(Object actual, String name, Object rule) {
    return switch (name) {
      case "$match" -> actual instanceof String text && Pattern.compile(rule.toString()).matcher(text).find();
      case "$type" -> {
        if (!List.of("string", "integer", "boolean").contains(rule)) throw new AssertionError("there is no type " + rule);
        yield Schema.typeOf(actual).equals(rule);
      }
      case "$includes" -> Schema.items(actual).stream().anyMatch(item -> difference(item, rule, "", false) == null);
      default -> throw new AssertionError("there is no matcher " + name);
    };
  }

  /** @param exact an object may have no unexpected field @return the first difference, or null */
  static String difference(Object actual, Object expected, String at, boolean exact) {
    if (expected instanceof List<?> list) {
      if (!(actual instanceof List<?> actualItems) || actualItems.size() != list.size()) {
        return at + ": " + show(actual) + " is no list of " + list.size();
      }
      for (int i = 0; i < list.size(); i++) {
        String found = difference(actualItems.get(i), list.get(i), at + "[" + i + "]", exact);
        if (found != null) return found;
      }
      return null;
    }
    if (!(expected instanceof Map<?, ?>)) {
      return Objects.equals(actual, expected) ? null : at + ": " + show(actual) + ", expected " + show(expected);
    }
    Map<String, Object> fields = Schema.fields(expected);
    for (Map.Entry<String, Object> only : fields.entrySet()) {
      if (fields.size() > 1 || !only.getKey().startsWith("$")) break;
      boolean holds = matcher(actual, only.getKey(), only.getValue());
      return holds ? null : at + ": " + show(actual) + " is not " + only.getKey() + " " + show(only.getValue());
    }
    return fieldsDifference(actual, fields, at, exact);
  }

  private static String fieldsDifference(Object actual, Map<String, Object> expected, String at, boolean exact) {
    if (!(actual instanceof Map<?, ?>)) return at + ": " + show(actual) + " is no object";
    Map<String, Object> actualFields = Schema.fields(actual);
    for (String name : actualFields.keySet()) {
      if (exact && !expected.containsKey(name)) return at + ": " + name + " must not be there";
    }
    for (Map.Entry<String, Object> field : expected.entrySet()) {
      String name = field.getKey();
      String found = difference(actualFields.get(name), field.getValue(), at + "." + name, exact);
      if (found != null) return found;
    }
    return null;
  }

  static boolean within(double value, Object range) {
    Map<String, Object> bounds = Schema.fields(range);
    double min = (Double) bounds.getOrDefault("min", 0.0);
    double max = (Double) bounds.getOrDefault("max", Double.MAX_VALUE);
    return value >= min && value <= max;
  }
}
