package dev.gpd.consent;

import java.util.List;

/**
 * A visitor's choices. Without a valid state {@code purposes} is empty, and {@code seq} and {@code at} are null.
 *
 * @param setCookie value of a Set-Cookie header to send with the page, or null
 */
public record CurrentState(List<String> purposes, Long seq, String at, String setCookie) {
  static final CurrentState NOBODY = new CurrentState(List.of(), null, null, null);

  CurrentState withCookie(String cookie) {
    return new CurrentState(purposes, seq, at, cookie);
  }
}
