package dev.gpd.consent;

import com.google.gson.JsonObject;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.time.Duration;
import java.util.List;

/**
 * What is to be sent.
 *
 * @param name of the method, for errors
 * @param body null for a GET
 * @param idempotencyKey or null
 * @param isOpen the key is not sent
 * @param status the only one that is an answer
 * @param principals of the call: they must not be in an error
 */
record Call(
    String name,
    String path,
    String body,
    String accept,
    String idempotencyKey,
    boolean isOpen,
    int status,
    Duration timeout,
    List<String> principals) {

  static Call get(String name, String path, Duration timeout) {
    return new Call(name, path, null, "application/json", null, false, 200, timeout, List.of());
  }

  static Call post(String name, String path, JsonObject body, Duration timeout, List<String> principals) {
    return new Call(name, path, body.toString(), "application/json", null, false, 200, timeout, principals);
  }

  Call accepting(String type) {
    return new Call(name, path, body, type, idempotencyKey, isOpen, status, timeout, principals);
  }

  Call open() {
    return new Call(name, path, body, accept, idempotencyKey, true, status, timeout, principals);
  }

  /** A write answers 201 and has its own time. */
  Call writing(Duration writeTimeout, String newKey) {
    return new Call(name, path, body, accept, newKey, isOpen, 201, writeTimeout, principals);
  }

  String method() {
    return body == null ? "GET" : "POST";
  }

  BodyPublisher publisher() {
    return body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body);
  }

  ConsentException malformed(Answer answer) {
    String code = ErrorKind.RESPONSE.toString();
    return ConsentException.answered(name, ErrorKind.RESPONSE, code, status, answer.requestId(), null);
  }
}
