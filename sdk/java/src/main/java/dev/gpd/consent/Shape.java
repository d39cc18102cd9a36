package dev.gpd.consent;

import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * Checks answers by the shapes of the OpenAPI document: a word with {@code |null} behind it if the value may be null, a list of one shape,
 * or fields, whose names end in {@code ?} if they may be absent.
 */
final class Shape {
  private static final Pattern HASH = Pattern.compile("[0-9a-f]{64}");

  private Shape() {}

  static Object parse(String text) {
    return text == null ? null : Json.object(Bytes.utf8(text));
  }

  static boolean matches(Object value, Object shape) {
    if (shape instanceof String word) {
      if (word.endsWith("|null")) return value == null || isWord(value, word.substring(0, word.length() - 5));
      return isWord(value, word);
    }
    if (shape instanceof List<?> list) {
      return value instanceof List<?> items && items.stream().allMatch(item -> matches(item, list.get(0)));
    }
    if (!(value instanceof Map<?, ?> object)) return false;
    for (Map.Entry<?, ?> field : ((Map<?, ?>) shape).entrySet()) {
      String name = (String) field.getKey();
      boolean isOptional = name.endsWith("?");
      if (isOptional) name = name.substring(0, name.length() - 1);
      if (object.containsKey(name) ? !matches(object.get(name), field.getValue()) : !isOptional) return false;
    }
    return true;
  }

  private static boolean isWord(Object value, String word) {
    return switch (word) {
      case "string" -> value instanceof String;
      case "boolean" -> value instanceof Boolean;
      case "number" -> value instanceof Number;
      case "integer" -> value instanceof Long;
      case "seq" -> value instanceof Long seq && seq >= 0;
      case "hash" -> value instanceof String text && HASH.matcher(text).matches();
      default -> value instanceof Map;
    };
  }
}
