package dev.gpd.consent;

import com.google.gson.JsonObject;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.time.Duration;
import java.util.List;
import java.util.Set;

/**
 * A request to be sent.
 *
 * @param name the method, for errors
 * @param body null for a GET
 * @param idempotencyKey may be null
 * @param isOpen true if it is sent without the key
 * @param statuses statuses of a successful answer
 * @param principals ids that no error may contain
 */
record Call(
    String name,
    String path,
    String body,
    String accept,
    String idempotencyKey,
    boolean isOpen,
    Set<Integer> statuses,
    Duration timeout,
    List<String> principals) {

  static Call get(String name, String path, Duration timeout) {
    return new Call(name, path, null, "application/json", null, false, Set.of(200), timeout, List.of());
  }

  static Call post(String name, String path, JsonObject body, Duration timeout, List<String> principals) {
    return new Call(name, path, body.toString(), "application/json", null, false, Set.of(200), timeout, principals);
  }

  Call accepting(String type) {
    return new Call(name, path, body, type, idempotencyKey, isOpen, statuses, timeout, principals);
  }

  Call open() {
    return new Call(name, path, body, accept, idempotencyKey, true, statuses, timeout, principals);
  }

  /** A write is answered with 201 and has a separate timeout. */
  Call writing(Duration writeTimeout, String newKey) {
    return new Call(name, path, body, accept, newKey, isOpen, Set.of(201), writeTimeout, principals);
  }

  /** A report is answered with 200 if it was stored before. */
  Call reporting(Duration writeTimeout) {
    return new Call(name, path, body, accept, null, isOpen, Set.of(200, 201), writeTimeout, principals);
  }

  String method() {
    return body == null ? "GET" : "POST";
  }

  BodyPublisher publisher() {
    return body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body);
  }

  ConsentException malformed(Answer answer) {
    String code = ErrorKind.RESPONSE.toString();
    return ConsentException.answered(name, ErrorKind.RESPONSE, code, answer.status(), answer.requestId(), null);
  }
}
