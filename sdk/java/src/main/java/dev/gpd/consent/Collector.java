package dev.gpd.consent;

import java.io.ByteArrayOutputStream;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;

/** Reads at most so many bytes of a body, 4 MiB as a rule; a larger one is null. */
final class Collector implements HttpResponse.BodySubscriber<byte[]> {
  static final int MAX_BYTES = 4 * 1024 * 1024;

  private final CompletableFuture<byte[]> body = new CompletableFuture<>();
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(512);
  private final int most;
  private Flow.Subscription subscription;

  /** @param most negative: any body, an empty one too, is null */
  Collector(int most) {
    this.most = most;
  }

  @Override
  public CompletableFuture<byte[]> getBody() {
    return body;
  }

  @Override
  public void onSubscribe(Flow.Subscription given) {
    subscription = given;
    given.request(Long.MAX_VALUE);
  }

  @Override
  public void onNext(List<ByteBuffer> buffers) {
    for (ByteBuffer buffer : buffers) {
      if (bytes.size() + buffer.remaining() > most) {
        // Closes the connection.
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
    body.complete(most < 0 ? null : bytes.toByteArray());
  }
}
