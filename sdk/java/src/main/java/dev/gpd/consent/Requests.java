package dev.gpd.consent;

import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;

/** Sends calls, and checks and reads their answers. */
abstract class Requests {
  private final Transport transport;

  Requests(Transport transport) {
    this.transport = transport;
  }

  static <T> T rethrow(ConsentException error) {
    throw error;
  }

  final <T> Pending<T> pending(
      String name,
      CallOptions options,
      Supplier<Call> createCall,
      Function<Answer, T> result,
      Function<ConsentException, T> otherwise) {
    return new Pending<>(
        () -> {
          Call call = createCall.get();
          if (options == null) throw ConsentException.hinted(name, ErrorKind.CONFIG, "there are no options");
          if (options.timeout() != null) ConsentClientBuilder.checkCallTimeout(name, options.timeout());
          return transport.begin(call, options);
        },
        result,
        error -> otherwise.apply(transport.told(error)));
  }

  /** Reads an answer of this shape with the reader. */
  static <T> T read(
      String name, String operation, Answer answer, Function<Map<String, Object>, T> reader) {
    Map<String, Object> body = Json.object(answer.body());
    Object shape = Wire.OPERATIONS.get(operation).shape();
    try {
      if (body != null && (shape == null || Shape.matches(body, shape))) return reader.apply(body);
    } catch (Fields.Malformed malformed) {
      // As for another shape.
    }
    throw ConsentException.malformed(name, answer);
  }

  final <T> Pending<T> json(
      String name,
      String operation,
      CallOptions options,
      Supplier<Call> createCall,
      Function<Map<String, Object>, T> reader) {
    return pending(
        name, options, createCall, answer -> read(name, operation, answer, reader), Requests::rethrow);
  }

  final <T> Pending<T> json(String name, CallOptions options, Supplier<Call> createCall, Class<T> type) {
    return json(name, name, options, createCall, body -> Records.build(type, body));
  }

  final Pending<String> text(String name, CallOptions options, Supplier<Call> createCall) {
    return pending(
        name,
        options,
        createCall,
        answer -> {
          if (answer.body() == null) throw ConsentException.malformed(name, answer);
          return new String(answer.body(), StandardCharsets.UTF_8);
        },
        Requests::rethrow);
  }

  /** A body of these fields; those without a value are left out. */
  static JsonObject object(Object... pairs) {
    JsonObject body = new JsonObject();
    for (int i = 0; i < pairs.length; i += 2) {
      String name = (String) pairs[i];
      if (pairs[i + 1] instanceof String text) body.addProperty(name, text);
      else if (pairs[i + 1] instanceof Number number) body.addProperty(name, number);
      else if (pairs[i + 1] instanceof Boolean truth) body.addProperty(name, truth);
    }
    return body;
  }
}
