package dev.gpd.consent;

/** What went wrong: {@link #toString} is the same string in every language. */
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

  /** Every 4xx that is not named here is the caller's request; what is neither 4xx nor 5xx is an odd answer. */
  static ErrorKind ofStatus(int status) {
    return switch (status) {
      case 401 -> UNAUTHENTICATED;
      case 403 -> PERMISSION_DENIED;
      case 404 -> NOT_FOUND;
      case 408 -> TIMEOUT;
      case 409 -> CONFLICT;
      case 429 -> RATE_LIMITED;
      default -> status >= 500 ? SERVER : status >= 400 ? INVALID_REQUEST : RESPONSE;
    };
  }
}
