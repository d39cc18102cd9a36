package dev.gpd.consent;

import java.net.http.HttpHeaders;
import java.net.http.HttpResponse;

/**
 * An answer of any status.
 *
 * @param body null if it was too large or coded
 */
record Reply(int status, HttpHeaders headers, byte[] body) {
  static Reply of(HttpResponse<byte[]> response) {
    return new Reply(response.statusCode(), response.headers(), response.body());
  }
}
