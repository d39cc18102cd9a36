import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.gpd.consent.ConsentClient;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What the client adds to a bare java.net.http.HttpClient. Prints one line of JSON for `npm run bench -- sdk`: the p50 of each round. */
class Main {
  interface Ask {
    boolean isAllowed(String principalId) throws Exception;
  }

  static int number(String name) {
    return Integer.parseInt(System.getenv(name));
  }

  static Ask bare() {
    HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    URI address = URI.create(System.getenv("GPD_CONSENT_URL") + "/v1/consent/can-process");
    String authorization = "Bearer " + System.getenv("GPD_CONSENT_KEY");
    return principalId -> {
      JsonObject body = new JsonObject();
      body.addProperty("principalId", principalId);
      body.addProperty("purpose", "newsletter");
      HttpRequest request =
          HttpRequest.newBuilder(address)
              .header("Authorization", authorization)
              .header("Content-Type", "application/json")
              .POST(HttpRequest.BodyPublishers.ofString(body.toString()))
              .build();
      String answer = client.send(request, HttpResponse.BodyHandlers.ofString()).body();
      return JsonParser.parseString(answer).getAsJsonObject().get("allowed").getAsBoolean();
    };
  }

  static double p50(Ask ask, int count) throws Exception {
    long[] times = new long[count];
    for (int i = 0; i < count; i++) {
      long before = System.nanoTime();
      if (!ask.isAllowed("person-" + i)) throw new IllegalStateException("it was not allowed");
      times[i] = System.nanoTime() - before;
    }
    Arrays.sort(times);
    return times[count / 2] / 1000.0;
  }

  public static void main(String[] args) throws Exception {
    ConsentClient client = ConsentClient.fromEnv();
    Ask sdk = principalId -> client.isAllowed(principalId, "newsletter");
    Ask bare = bare();
    p50(sdk, number("BENCH_WARM_UP"));
    p50(bare, number("BENCH_WARM_UP"));
    List<Double> ofSdk = new ArrayList<>();
    List<Double> ofBare = new ArrayList<>();
    for (int round = 0; round < number("BENCH_ROUNDS"); round++) {
      ofSdk.add(p50(sdk, number("BENCH_COUNT")));
      ofBare.add(p50(bare, number("BENCH_COUNT")));
    }
    System.out.println("{\"sdk\": " + ofSdk + ", \"bare\": " + ofBare + "}");
  }
}
