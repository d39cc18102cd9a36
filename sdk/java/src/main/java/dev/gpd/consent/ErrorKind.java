package dev.gpd.consent;

/** The kind of an error; {@link #toString} gives the same string in every language. */
public enum ErrorKind {
  CONFIG("config"),
  INVALID_REQUEST("invalid-request"),
  UNAUTHENTICATED("unauthenticated"),
  PERMISSION_DENIED("permission-denied"),
  NOT_FOUND("not-found"),
  CONFLICT("conflict"),
  RATE_LIMITED("rate-limited"),
  SERVER("server"),
  NETWORK("network"),
  TIMEOUT("timeout"),
  RESPONSE("response"),
  PROOF("proof");

  private final String text;

  ErrorKind(String text) {
    this.text = text;
  }

  @Override
  public String toString() {
    return text;
  }

  /** Other 4xx mean an invalid request; a status that is neither 4xx nor 5xx means a malformed response. */
  static ErrorKind ofStatus(int status) {
    ErrorKind named = Wire.KIND_OF_STATUS.get(status);
    if (named != null) return named;
    return status >= 500 ? SERVER : status >= 400 ? INVALID_REQUEST : RESPONSE;
  }
}
