package dev.gpd.consent;

import java.net.URI;
import java.net.URISyntaxException;
import java.net.http.HttpClient;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/** Options of a {@link ConsentClient}; {@link #build} refuses an invalid one without its value. */
public final class ConsentClientBuilder {
  private static final Duration MIN_TIMEOUT = Duration.ofMillis(1);
  private static final Duration MAX_TIMEOUT = Duration.ofMinutes(10);
  private static final Duration MAX_CALL_TIMEOUT = Duration.ofMinutes(1);
  private static final int MAX_PORT = 65_535;
  private static final Pattern VISIBLE_ASCII = Pattern.compile("[\\x21-\\x7e]+");
  private static final Pattern COOKIE_DOMAIN = Pattern.compile("\\.?[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*");
  private static final String NAME = "ConsentClient";

  private List<String> urls = List.of();
  private String key;
  private Duration timeout = Duration.ofSeconds(2);
  private Duration writeTimeout = Duration.ofSeconds(10);
  private int retries = 2;
  private OnUnavailable onUnavailable = OnUnavailable.DENY;
  private String cookieDomain;
  private Clock clock = Clock.systemUTC();
  private HttpClient httpClient;
  private Consumer<ConsentException> onError = error -> {};

  ConsentClientBuilder() {}

  private static ConsentException refusal(String hint) {
    return ConsentException.hinted(NAME, ErrorKind.CONFIG, hint);
  }

  /** gpd's base address, such as {@code https://id.shop.example}. */
  public ConsentClientBuilder url(String value) {
    urls = value == null ? List.of() : List.of(value);
    return this;
  }

  /** Several addresses, which are tried in their order. */
  public ConsentClientBuilder urls(List<String> values) {
    urls = List.copyOf(values);
    return this;
  }

  /** Called with the error of each call that failed, also if it became a denial: for your log. */
  public ConsentClientBuilder onError(Consumer<ConsentException> value) {
    onError = value;
    return this;
  }

  /** An API key of the tenant, {@code gpd_sk_…}. */
  public ConsentClientBuilder key(String value) {
    key = value;
    return this;
  }

  /** Reads address and key from GPD_CONSENT_URL and GPD_CONSENT_KEY of this environment. */
  public ConsentClientBuilder env(Map<String, String> environment) {
    // White space parts several addresses.
    return urls(List.of(read(environment, "GPD_CONSENT_URL").strip().split("\\s+"))).key(read(environment, "GPD_CONSENT_KEY"));
  }

  private static String read(Map<String, String> environment, String name) {
    String value = environment.get(name);
    if (value == null || value.isEmpty()) throw refusal(name + " is not set");
    return value;
  }

  /** Total time of a reading call with its retries; by default 2 s. */
  public ConsentClientBuilder timeout(Duration value) {
    timeout = value;
    return this;
  }

  /** Total time of a writing call; by default 10 s. */
  public ConsentClientBuilder writeTimeout(Duration value) {
    writeTimeout = value;
    return this;
  }

  /** Attempts after the first; by default 2. */
  public ConsentClientBuilder retries(int value) {
    retries = value;
    return this;
  }

  public ConsentClientBuilder onUnavailable(OnUnavailable value) {
    onUnavailable = value;
    return this;
  }

  /** The {@code data-domain} of your banner, such as {@code .shop.example}, for the cookies that are renewed; null for none. */
  public ConsentClientBuilder cookieDomain(String value) {
    cookieDomain = value;
    return this;
  }

  /** Another clock for the age of cookies. */
  public ConsentClientBuilder clock(Clock value) {
    clock = value;
    return this;
  }

  /** Replaces the HTTP client, for instance to use a proxy. It must neither follow redirects nor keep cookies. */
  public ConsentClientBuilder httpClient(HttpClient value) {
    httpClient = value;
    return this;
  }

  private static void checkTimeout(String method, String name, Duration value, Duration most) {
    if (value == null || value.compareTo(MIN_TIMEOUT) < 0 || value.compareTo(most) > 0) {
      String hint = name + " is a time from 1 ms to " + most.toMinutes() + " min";
      throw ConsentException.hinted(method, ErrorKind.CONFIG, hint);
    }
  }

  /** Checks the timeout of a single call. @throws ConsentException config */
  static void checkCallTimeout(String method, Duration value) {
    checkTimeout(method, "timeout", value, MAX_CALL_TIMEOUT);
  }

  private static String baseOf(String text) {
    URI parsed = null;
    try {
      parsed = new URI(text == null ? "" : text);
    } catch (URISyntaxException malformed) {
      // Ignored: the message quotes the address.
    }
    // java.net.URI finds no host if its name has an underscore, and the JDK's client cannot call such an address.
    if (parsed != null && parsed.getHost() == null && parsed.getRawAuthority() != null) {
      throw refusal("url names a host that Java's HTTP client cannot call: letters, digits, hyphens and dots alone");
    }
    boolean isPlain =
        parsed != null
            && parsed.getHost() != null
            && parsed.getPort() != 0
            && parsed.getPort() <= MAX_PORT
            && parsed.getRawUserInfo() == null
            && ("http".equalsIgnoreCase(parsed.getScheme()) || "https".equalsIgnoreCase(parsed.getScheme()))
            && text.indexOf('?') < 0
            && text.indexOf('#') < 0;
    if (!isPlain) throw refusal("url is an http or https address without user info, query and fragment");
    String path = parsed.getRawPath();
    int end = path.length();
    while (end > 0 && path.charAt(end - 1) == '/') end--;
    return parsed.getScheme() + "://" + parsed.getRawAuthority() + path.substring(0, end);
  }

  /** @throws ConsentException config */
  public ConsentClient build() {
    if (key == null || !VISIBLE_ASCII.matcher(key).matches()) throw refusal("key must be an API key of visible ASCII characters (GPD_CONSENT_KEY)");
    if (urls.isEmpty()) baseOf(null);
    List<String> bases = urls.stream().map(ConsentClientBuilder::baseOf).toList();
    checkTimeout(NAME, "timeout", timeout, MAX_TIMEOUT);
    checkTimeout(NAME, "writeTimeout", writeTimeout, MAX_TIMEOUT);
    if (retries < 0 || retries > 10) throw refusal("retries is an integer from 0 to 10");
    if (onUnavailable == null) throw refusal("onUnavailable is DENY or ERROR");
    if (cookieDomain != null && !COOKIE_DOMAIN.matcher(cookieDomain).matches()) throw refusal("cookieDomain is a domain such as .shop.example");
    if (clock == null) throw refusal("clock is a clock");
    HttpClient http = httpClient == null ? Transport.newHttpClient() : httpClient;
    if (http.followRedirects() != HttpClient.Redirect.NEVER || http.cookieHandler().isPresent()) {
      throw refusal("httpClient must neither follow redirects nor keep cookies");
    }
    Settings settings = new Settings(bases, key, timeout, writeTimeout, retries, onUnavailable, cookieDomain, clock, onError);
    return new ConsentClient(new Transport(settings, http, httpClient == null));
  }
}
