package dev.gpd.consent;

import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Makes records of answers whose shape was checked. Fields that a record does not have are passed over. */
final class Records {
  private Records() {}

  /** @throws Fields.Malformed for a time that is none */
  static <T> T build(Class<T> type, Map<?, ?> fields) {
    RecordComponent[] components = type.getRecordComponents();
    Class<?>[] types = Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new);
    Object[] values = Arrays.stream(components).map(one -> convert(one.getGenericType(), fields.get(one.getName()))).toArray();
    try {
      return type.getDeclaredConstructor(types).newInstance(values);
    } catch (ReflectiveOperationException every) {
      throw new IllegalStateException("a record has its constructor", every);
    }
  }

  private static Object convert(Type type, Object value) {
    if (value == null) return type == boolean.class ? Boolean.FALSE : null;
    if (type == Instant.class) return time((String) value);
    if (type instanceof ParameterizedType list && value instanceof List<?> items) {
      Type item = list.getActualTypeArguments()[0];
      return items.stream().map(one -> convert(item, one)).toList();
    }
    if (type instanceof Class<?> one && one.isRecord()) return build(one, (Map<?, ?>) value);
    return value;
  }

  private static Instant time(String text) {
    try {
      return Instant.parse(text);
    } catch (DateTimeException malformed) {
      throw new Fields.Malformed();
    }
  }
}
