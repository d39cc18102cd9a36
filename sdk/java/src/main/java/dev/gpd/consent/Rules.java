package dev.gpd.consent;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.regex.Pattern;

/** Checks arguments before a call. The messages contain no values. */
final class Rules {
  private static final int MAX_CHECKS = 100;
  private static final Pattern REQUEST_ID = Pattern.compile("[A-Za-z0-9_-]{1,64}");
  private static final Pattern IDEMPOTENCY_KEY = Pattern.compile("[\\x21-\\x7e]{1,255}");

  private Rules() {}

  private static void require(String method, boolean holds, String hint) {
    if (!holds) throw ConsentException.hinted(method, ErrorKind.INVALID_REQUEST, hint);
  }

  /** Refuses half a surrogate pair: the encoder would replace it by a question mark, and two ids could become one. */
  private static boolean isText(String value) {
    return value != null && !value.isEmpty() && StandardCharsets.UTF_8.newEncoder().canEncode(value);
  }

  static void principal(String method, String principalId) {
    require(method, isText(principalId), "principalId is a text that is not empty");
  }

  static void text(String method, String name, String value) {
    require(method, isText(value), name + " is a text that is not empty");
  }

  static void check(String method, Check check) {
    require(method, check != null, "there is no check");
    principal(method, check.principalId());
    require(method, isText(check.purpose()), "purpose is a text that is not empty");
    require(method, check.minSeq() == null || isSeq(check.minSeq()), "minSeq is an integer from 0 on");
  }

  static void batch(String method, List<Check> checks) {
    require(method, checks != null, "there are no checks");
    String hint = "one call takes " + MAX_CHECKS + " checks: they are of one snapshot";
    require(method, checks.size() <= MAX_CHECKS, hint);
    for (Check one : checks) {
      check(method, one);
      // Refused, because the request of a batch has no field for it.
      require(method, one.minSeq() == null, "a batch has no minSeq");
    }
  }

  static void write(String method, ConsentWrite write) {
    require(method, write != null, "there is nothing to write");
    principal(method, write.principalId());
    List<String> purposes = write.purposes();
    boolean named = purposes != null && !purposes.isEmpty() && purposes.stream().allMatch(Rules::isText);
    require(method, named, "purposes is a list of texts that is not empty");
  }

  /** @param principalId null if nobody is signed in */
  static void page(String method, Object header, List<String> purposes, String principalId) {
    require(method, header != null, "header is a function from the name of a header to its value");
    boolean named = purposes != null && purposes.size() <= MAX_CHECKS && purposes.stream().allMatch(Rules::isText);
    require(method, named, "purposes is a list of at most " + MAX_CHECKS + " texts that are not empty");
    if (principalId != null) principal(method, principalId);
  }

  private static boolean isSeq(long seq) {
    return seq >= 0 && seq <= Json.MAX_SAFE_INTEGER;
  }

  static void seq(String method, long seq) {
    require(method, isSeq(seq), "seq is an integer from 0 on");
  }

  static void requestId(String method, String id) {
    require(method, id != null && REQUEST_ID.matcher(id).matches(), "requestId is that of an ingest, req_…");
  }

  static void agent(AgentRequest request) {
    boolean holds = request != null && isText(request.method()) && isText(request.url()) && request.header() != null;
    require("agent", holds, "request has a method, a url and a function from the name of a header to its value");
  }

  static void deadline(String method, Duration deadline) {
    boolean holds = deadline != null && deadline.toMillis() >= 1 && deadline.compareTo(Duration.ofMinutes(1)) <= 0;
    require(method, holds, "deadline is a time from 1 ms to a minute");
  }

  static void report(String method, String id, String outcome) {
    requestId(method, id);
    require(method, isText(outcome), "outcome is a text that is not empty");
  }

  static void idempotencyKey(String method, String key) {
    boolean holds = IDEMPOTENCY_KEY.matcher(key).matches();
    require(method, holds, "idempotencyKey is 1 to 255 visible ASCII characters");
  }
}
