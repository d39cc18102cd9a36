package dev.gpd.consent;

import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.net.http.HttpConnectTimeoutException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.UnresolvedAddressException;
import javax.net.ssl.SSLException;

/** Finds out why there is no answer. The cause is a new exception with the class of the failure: its message could quote a header. */
final class Network {
  private Network() {}

  static ConsentException broken(String method, Throwable failure) {
    Throwable inner = failure;
    ErrorDetail detail = null;
    for (Throwable one = failure; one != null; one = one.getCause()) {
      ErrorDetail found = detailOf(one);
      // A name or a certificate is the cause of a connection that was refused or closed.
      if (found != null && (detail == null || found == ErrorDetail.DNS || found == ErrorDetail.TLS)) {
        inner = one;
        detail = found;
      }
    }
    return ConsentException.broken(method, detail, new IOException(inner.getClass().getName()));
  }

  private static ErrorDetail detailOf(Throwable one) {
    String words = String.valueOf(one.getMessage());
    if (one instanceof UnresolvedAddressException || one instanceof UnknownHostException) return ErrorDetail.DNS;
    if (one instanceof SSLException) return ErrorDetail.TLS;
    if (one instanceof ConnectException || one instanceof NoRouteToHostException || one instanceof HttpConnectTimeoutException) {
      return ErrorDetail.REFUSED;
    }
    // The JDK has no types for these.
    if (words.contains("Invalid status line") || words.startsWith("parsing HTTP/1.1") || words.contains("protocol")) {
      return ErrorDetail.PROTOCOL;
    }
    boolean isEnd = one instanceof EOFException || one instanceof ClosedChannelException || one instanceof SocketException;
    boolean isReset = words.contains("reset") || words.contains("closed") || words.contains("Broken pipe") || words.contains("no bytes");
    return isEnd || isReset ? ErrorDetail.RESET : null;
  }
}
