package dev.gpd.consent;

/**
 * The only exception of this package. It contains no key, no principal id, no cause and no text of a server. A cancelled call throws
 * {@link java.util.concurrent.CancellationException} instead.
 */
public final class ConsentException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final ErrorKind kind;
  private final String code;
  private final Integer status;
  private final String requestId;
  private final Integer retryAfterSeconds;

  private ConsentException(
      String message, ErrorKind kind, String code, Integer status, String requestId, Integer retryAfterSeconds) {
    super(message);
    this.kind = kind;
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  static ConsentException of(String method, ErrorKind kind) {
    return of(method, kind, kind.toString());
  }

  static ConsentException of(String method, ErrorKind kind, String code) {
    return new ConsentException(text(method, kind, code, null), kind, code, null, null, null);
  }

  /** @param hint a remedy for the caller, without values of the call */
  static ConsentException hinted(String method, ErrorKind kind, String hint) {
    String code = kind.toString();
    return new ConsentException(text(method, kind, code, null) + ": " + hint, kind, code, null, null, null);
  }

  static ConsentException answered(
      String method, ErrorKind kind, String code, int status, String requestId, Integer retryAfterSeconds) {
    return new ConsentException(text(method, kind, code, status), kind, code, status, requestId, retryAfterSeconds);
  }

  private static String text(String method, ErrorKind kind, String code, Integer status) {
    String what = kind.toString().equals(code) ? code : kind + " (" + code + ")";
    return method + ": " + what + (status == null ? "" : ", status " + status);
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

  /** True if a check may become a denial. Errors that the caller has to fix are thrown instead. */
  boolean isUndecided() {
    if (status == null) return kind != ErrorKind.CONFIG && kind != ErrorKind.INVALID_REQUEST;
    return status != 400 && status != 401 && status != 403 && status != 422;
  }
}
