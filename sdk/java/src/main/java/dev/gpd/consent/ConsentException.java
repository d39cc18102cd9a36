package dev.gpd.consent;

import java.io.IOException;

/**
 * The only exception of this package, with a class for each kind. It contains no key, no principal id and no text of a server. A cancelled
 * call throws {@link java.util.concurrent.CancellationException} instead.
 */
public class ConsentException extends RuntimeException {
  private static final long serialVersionUID = 2L;

  private final ErrorKind kind;
  private final String code;
  private final Integer status;
  private final String requestId;
  private final Integer retryAfterSeconds;
  private final ErrorDetail detail;

  private record Facts(
      String method,
      ErrorKind kind,
      String code,
      Integer status,
      String requestId,
      Integer retryAfterSeconds,
      ErrorDetail detail,
      String hint,
      IOException cause) {
    String text() {
      String what = kind.toString().equals(code) ? code : kind + " (" + code + ")";
      String more = (status == null ? "" : ", status " + status) + (detail == null ? "" : ", " + detail);
      return method + ": " + what + more + (hint == null ? "" : ": " + hint);
    }

    ConsentException make() {
      return switch (kind) {
        case CONFIG -> new Config(this);
        case INVALID_REQUEST -> new InvalidRequest(this);
        case UNAUTHENTICATED -> new Unauthenticated(this);
        case PERMISSION_DENIED -> new PermissionDenied(this);
        case NOT_FOUND -> new NotFound(this);
        case CONFLICT -> new Conflict(this);
        case RATE_LIMITED -> new RateLimited(this);
        case SERVER -> new Server(this);
        case NETWORK -> new Network(this);
        case TIMEOUT -> new Timeout(this);
        case RESPONSE -> new Response(this);
        case PROOF -> new Proof(this);
      };
    }
  }

  public static final class Config extends ConsentException {
    private static final long serialVersionUID = 2L;

    private Config(Facts facts) {
      super(facts);
    }
  }

  public static final class InvalidRequest extends ConsentException {
    private static final long serialVersionUID = 2L;

    private InvalidRequest(Facts facts) {
      super(facts);
    }
  }

  public static final class Unauthenticated extends ConsentException {
    private static final long serialVersionUID = 2L;

    private Unauthenticated(Facts facts) {
      super(facts);
    }
  }

  public static final class PermissionDenied extends ConsentException {
    private static final long serialVersionUID = 2L;

    private PermissionDenied(Facts facts) {
      super(facts);
    }
  }

  public static final class NotFound extends ConsentException {
    private static final long serialVersionUID = 2L;

    private NotFound(Facts facts) {
      super(facts);
    }
  }

  public static final class Conflict extends ConsentException {
    private static final long serialVersionUID = 2L;

    private Conflict(Facts facts) {
      super(facts);
    }
  }

  public static final class RateLimited extends ConsentException {
    private static final long serialVersionUID = 2L;

    private RateLimited(Facts facts) {
      super(facts);
    }
  }

  public static final class Server extends ConsentException {
    private static final long serialVersionUID = 2L;

    private Server(Facts facts) {
      super(facts);
    }
  }

  public static final class Network extends ConsentException {
    private static final long serialVersionUID = 2L;

    private Network(Facts facts) {
      super(facts);
    }
  }

  public static final class Timeout extends ConsentException {
    private static final long serialVersionUID = 2L;

    private Timeout(Facts facts) {
      super(facts);
    }
  }

  public static final class Response extends ConsentException {
    private static final long serialVersionUID = 2L;

    private Response(Facts facts) {
      super(facts);
    }
  }

  public static final class Proof extends ConsentException {
    private static final long serialVersionUID = 2L;

    private Proof(Facts facts) {
      super(facts);
    }
  }

  private ConsentException(Facts facts) {
    super(facts.text(), facts.cause());
    kind = facts.kind();
    code = facts.code();
    status = facts.status();
    requestId = facts.requestId();
    retryAfterSeconds = facts.retryAfterSeconds();
    detail = facts.detail();
  }

  static ConsentException of(String method, ErrorKind kind) {
    return of(method, kind, kind.toString());
  }

  static ConsentException of(String method, ErrorKind kind, String code) {
    return new Facts(method, kind, code, null, null, null, null, null, null).make();
  }

  /** @param hint a remedy for the caller, without values of the call */
  static ConsentException hinted(String method, ErrorKind kind, String hint) {
    return new Facts(method, kind, kind.toString(), null, null, null, null, hint, null).make();
  }

  static ConsentException answered(
      String method, ErrorKind kind, String code, int status, String requestId, Integer retryAfterSeconds) {
    ErrorDetail detail = status == 407 ? ErrorDetail.PROXY : null;
    return new Facts(method, kind, code, status, requestId, retryAfterSeconds, detail, null, null).make();
  }

  static ConsentException malformed(String method, Answer answer) {
    String code = ErrorKind.RESPONSE.toString();
    Integer status = answer.status();
    return new Facts(method, ErrorKind.RESPONSE, code, status, answer.requestId(), null, ErrorDetail.BODY, null, null).make();
  }

  /** @param cause without a word of the failure */
  static ConsentException broken(String method, ErrorDetail detail, IOException cause) {
    return new Facts(method, ErrorKind.NETWORK, "network", null, null, null, detail, null, cause).make();
  }

  public ErrorKind kind() {
    return kind;
  }

  /** The server's error code, {@code closed}, the reason why a proof fails, or else the kind. */
  public String code() {
    return code;
  }

  /** The HTTP status, or null. */
  public Integer status() {
    return status;
  }

  /** Identifies the request in the server's log; may be null. */
  public String requestId() {
    return requestId;
  }

  public Integer retryAfterSeconds() {
    return retryAfterSeconds;
  }

  /** Why there is no answer, or none of gpd; null if the kind says it all. */
  public ErrorDetail detail() {
    return detail;
  }

  /** True if a check may become a denial. Errors that the caller has to fix are thrown instead. */
  boolean isUndecided() {
    if (status == null) return kind != ErrorKind.CONFIG && kind != ErrorKind.INVALID_REQUEST;
    return !Wire.ALWAYS_RAISED.contains(status) && (status < 300 || status > 399);
  }
}
