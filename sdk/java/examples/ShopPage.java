// A page that is rendered by what its visitor allows, on the JDK's own server:
// GPD_CONSENT_URL=… GPD_CONSENT_KEY=… java -cp consent.jar:gson.jar ShopPage.java
// With Spring or servlets, `request::getHeader` takes the place of `exchange.getRequestHeaders()::getFirst`.
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import dev.gpd.consent.Consent;
import dev.gpd.consent.ConsentClient;
import dev.gpd.consent.Permissions;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.Function;

public final class ShopPage implements HttpHandler {
  private final Consent consent;
  private final Function<HttpExchange, String> principalOf;

  /** @param principalOf returns who is signed in, or null */
  public ShopPage(Consent consent, Function<HttpExchange, String> principalOf) {
    this.consent = consent;
    this.principalOf = principalOf;
  }

  @Override
  public void handle(HttpExchange exchange) throws IOException {
    Function<String, String> header = exchange.getRequestHeaders()::getFirst;
    Permissions may = consent.may(header, List.of("newsletter", "ads"), principalOf.apply(exchange));
    if (may.setCookie() != null) exchange.getResponseHeaders().add("Set-Cookie", may.setCookie());
    exchange.getResponseHeaders().set("Cache-Control", "private, no-store"); // the page is this visitor's
    String page = "<h1>Shop</h1>" + (may.allows("ads") ? "<p>Seen elsewhere</p>" : "");
    byte[] body = page.getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(200, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }

  public static void main(String[] args) throws IOException {
    Consent consent =
        ConsentClient.builder().env(System.getenv()).cookieDomain(System.getenv("COOKIE_DOMAIN")).build();
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 3000), 0);
    // This header takes the place of your session, which knows the person.
    server.createContext("/", new ShopPage(consent, exchange -> exchange.getRequestHeaders().getFirst("X-User")));
    server.start();
    System.out.println("http://127.0.0.1:3000/");
  }
}
