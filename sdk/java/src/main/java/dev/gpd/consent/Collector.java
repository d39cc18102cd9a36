package dev.gpd.consent;

import java.io.ByteArrayOutputStream;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;

/** Reads a body up to a limit, usually 4 MiB; the result is null for a larger one. */
final class Collector implements HttpResponse.BodySubscriber<byte[]> {
  static final int MAX_BYTES = 4 * 1024 * 1024;
  static final int MAX_EXPORT_BYTES = 256 * 1024 * 1024;

  private final CompletableFuture<byte[]> body = new CompletableFuture<>();
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(512);
  private final int maxBytes;
  private Flow.Subscription subscription;

  /** @param maxBytes if negative, the result is null for any body, even an empty one */
  Collector(int maxBytes) {
    this.maxBytes = maxBytes;
  }

  @Override
  public CompletableFuture<byte[]> getBody() {
    return body;
  }

  @Override
  public void onSubscribe(Flow.Subscription newSubscription) {
    subscription = newSubscription;
    newSubscription.request(Long.MAX_VALUE);
  }

  @Override
  public void onNext(List<ByteBuffer> buffers) {
    for (ByteBuffer buffer : buffers) {
      if (bytes.size() + buffer.remaining() > maxBytes) {
        // This closes the connection.
        subscription.cancel();
        body.complete(null);
        return;
      }
      byte[] part = new byte[buffer.remaining()];
      buffer.get(part);
      bytes.writeBytes(part);
    }
  }

  @Override
  public void onError(Throwable broken) {
    body.completeExceptionally(broken);
  }

  @Override
  public void onComplete() {
    body.complete(maxBytes < 0 ? null : bytes.toByteArray());
  }
}
