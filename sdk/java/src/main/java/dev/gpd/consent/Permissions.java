package dev.gpd.consent;

import java.util.List;

/**
 * The purposes that are allowed for one request.
 *
 * @param purposes the allowed purposes, in the order of the question
 * @param setCookie value of a Set-Cookie header to send with the page, or null
 */
public record Permissions(List<String> purposes, String setCookie) {
  /** False for a purpose that {@code may} was not asked about. */
  public boolean allows(String purpose) {
    return purposes.contains(purpose);
  }
}
