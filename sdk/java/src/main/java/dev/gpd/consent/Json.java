package dev.gpd.consent;

import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads only strict JSON (RFC 8259). Gson's own parser is lenient in every mode: it accepts {@code {allowed:true}}. */
final class Json {
  static final long MAX_SAFE_INTEGER = (1L << 53) - 1;

  private Json() {}

  /** Null unless the body is a JSON object. Integers become Long, other numbers Double. */
  static Map<String, Object> object(byte[] body) {
    if (body == null) return null;
    try (JsonReader reader = new JsonReader(new StringReader(new String(body, StandardCharsets.UTF_8)))) {
      reader.setStrictness(Strictness.STRICT);
      if (reader.peek() != JsonToken.BEGIN_OBJECT) return null;
      Map<String, Object> value = readObject(reader);
      return reader.peek() == JsonToken.END_DOCUMENT ? value : null;
    } catch (IOException | IllegalStateException | NumberFormatException malformed) {
      return null;
    }
  }

  private static Map<String, Object> readObject(JsonReader reader) throws IOException {
    Map<String, Object> fields = new LinkedHashMap<>();
    reader.beginObject();
    while (reader.hasNext()) fields.put(reader.nextName(), readValue(reader));
    reader.endObject();
    return fields;
  }

  private static Object readValue(JsonReader reader) throws IOException {
    switch (reader.peek()) {
      case BEGIN_OBJECT:
        return readObject(reader);
      case BEGIN_ARRAY:
        List<Object> items = new ArrayList<>();
        reader.beginArray();
        while (reader.hasNext()) items.add(readValue(reader));
        reader.endArray();
        return items;
      case STRING:
        return reader.nextString();
      case BOOLEAN:
        return reader.nextBoolean();
      case NUMBER:
        return number(reader.nextDouble());
      case NULL:
        reader.nextNull();
        return null;
      default:
        throw new IllegalStateException("no value");
    }
  }

  private static Number number(double value) {
    if (value == Math.rint(value) && Math.abs(value) <= MAX_SAFE_INTEGER) return (long) value;
    return value;
  }
}
