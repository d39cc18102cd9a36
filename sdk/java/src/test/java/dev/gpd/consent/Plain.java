package dev.gpd.consent;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.util.List;
import java.util.Map;

/** JSON as maps, lists, texts and numbers. */
final class Plain {
  private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

  private Plain() {}

  static Object json(String text) {
    return GSON.fromJson(text, Object.class);
  }

  static String show(Object value) {
    return GSON.toJson(value);
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> fields(Object value) {
    return value instanceof Map<?, ?> ? (Map<String, Object>) value : Map.of();
  }

  static List<?> items(Object value) {
    return value instanceof List<?> list ? list : List.of();
  }
}
