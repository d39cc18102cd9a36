package dev.gpd.consent;

import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.util.List;

/**
 * A request to be sent.
 *
 * @param name the method, for errors
 * @param operation its row in {@link Wire#OPERATIONS}
 * @param body null for none
 * @param token a token of a person in place of the key, or null
 * @param idempotencyKey may be null
 * @param secrets principal ids and tokens that no error may contain
 * @param args the arguments of the method, for the fake; null for a call that no method of the user made
 */
record Call(
    String name,
    String operation,
    String path,
    String body,
    String token,
    String idempotencyKey,
    List<String> secrets,
    List<Object> args) {

  /** @param param what stands in the path, or null */
  static Call of(String name, String operation, Object param) {
    String path = Wire.OPERATIONS.get(operation).path().replaceFirst("\\{\\w+}", String.valueOf(param));
    return new Call(name, operation, path, null, null, null, List.of(), null);
  }

  Call sending(String json, String... hidden) {
    return new Call(name, operation, path, json, token, idempotencyKey, List.of(hidden), args);
  }

  Call by(String session) {
    return new Call(name, operation, path, body, session, idempotencyKey, secrets, args);
  }

  Call under(String key) {
    return new Call(name, operation, path, body, token, key, secrets, args);
  }

  Call noting(Object... noted) {
    return new Call(name, operation, path, body, token, idempotencyKey, secrets, java.util.Arrays.asList(noted));
  }

  Wire.Row row() {
    return Wire.OPERATIONS.get(operation);
  }

  int maxBytes() {
    return operation.equals("exportLog") ? Collector.MAX_EXPORT_BYTES : Collector.MAX_BYTES;
  }

  BodyPublisher publisher() {
    return body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body);
  }
}
