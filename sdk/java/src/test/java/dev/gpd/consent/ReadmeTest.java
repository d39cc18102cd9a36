package dev.gpd.consent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import jakarta.servlet.Filter;
import java.io.IOException;
import java.io.StringWriter;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLClassLoader;
import java.net.URL;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.mock.web.MockFilterChain;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.web.servlet.HandlerInterceptor;

/** Follows the README word by word in an empty folder, with the library as a module, and runs the examples. */
class ReadmeTest {
  private static final String IMPORTS =
      "import dev.gpd.consent.*;\nimport java.time.*;\nimport java.util.*;\nimport java.util.concurrent.*;\n";

  @TempDir Path folder;

  private static List<String> blocks(String language) throws IOException {
    Pattern block = Pattern.compile("(?ms)^```" + language + "\\n(.*?)^```$");
    return block.matcher(Files.readString(Path.of("README.md"))).results().map((MatchResult one) -> one.group(1)).toList();
  }

  private static String pathOf(Class<?> type) throws URISyntaxException {
    return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
  }

  private static String modules() throws URISyntaxException {
    return pathOf(ConsentClient.class) + System.getProperty("path.separator") + pathOf(Gson.class);
  }

  private static void compile(String... args) {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    StringWriter output = new StringWriter();
    boolean good =
        compiler
            .getTask(output, null, null, List.of(args).subList(0, args.length - 1), null, sources(args[args.length - 1]))
            .call();
    assertTrue(good, output.toString());
  }

  private static Iterable<? extends javax.tools.JavaFileObject> sources(String file) {
    return ToolProvider.getSystemJavaCompiler()
        .getStandardFileManager(null, null, null)
        .getJavaFileObjects(Path.of(file));
  }

  private String java(Servers servers, String... args) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
    command.addAll(List.of(args));
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().put("GPD_CONSENT_URL", servers.text("url"));
    builder.environment().put("GPD_CONSENT_KEY", servers.key("secret"));
    builder.environment().put("LEDGER_VKEY", servers.text("vkey"));
    Process process = builder.start();
    String output = new String(process.getInputStream().readAllBytes());
    assertEquals(0, process.waitFor(), output);
    return output;
  }

  /** Compiles the program as a separate module and runs it. */
  private String run(Servers servers, String name, String code) throws Exception {
    Path file = Files.writeString(folder.resolve(name + ".java"), code);
    String out = folder.resolve("classes").toString();
    compile("-d", out, "--module-path", modules(), "--add-modules", "dev.gpd.consent", file.toString());
    String path = modules();
    return java(servers, "--module-path", path, "--add-modules", "dev.gpd.consent", "-cp", out, name);
  }

  @Test
  void wordForWord() throws Exception {
    List<String> code = blocks("java");
    assertEquals(10, code.size());
    String ask = code.get(0);
    assertTrue(ask.contains("isAllowed"));
    String rest =
        IMPORTS
            + ("class Rest {\n" + code.get(7) + "static void sign(byte[] rawBody) {\n" + code.get(8) + "}\n")
            + "public static void main(String[] args) {\n ConsentClient consent = ConsentClient.fromEnv();\n"
            + (code.get(3) + code.get(1) + code.get(2) + code.get(6) + code.get(4) + code.get(9))
            + "System.out.println(fake.isAllowed(\"u-1\", \"newsletter\"));\n}\n}\n";
    try (Servers servers = Servers.start()) {
      assertEquals("do not\n", run(servers, "Mail", ask));
      String output = run(servers, "Rest", rest);
      String expected = "true granted ProofRef\\[.*]\ntrue\nconsent\\.granted \\S+Z\ngranted with entry \\d+\nfalse\n";
      assertTrue(output.matches(expected), output);
      assertEquals("do not\n", run(servers, "Mail", ask));
    }
  }

  @Test
  void theDependencyIsThisOne() throws IOException {
    String pom = Files.readString(Path.of("pom.xml"));
    for (String line : blocks("xml").get(0).lines().filter(one -> one.startsWith("  ")).toList()) {
      assertTrue(pom.contains("\n  " + line.strip()), line);
    }
    assertTrue(pom.contains("<version>" + ConsentClient.VERSION + "</version>"));
  }

  @Test
  void theExampleRuns() throws Exception {
    try (Servers servers = Servers.start()) {
      String principal = "u-" + System.nanoTime();
      String output = java(servers, "-cp", modules(), "examples/CheckConsent.java", principal, "newsletter");
      assertEquals("before: false never-asked\ngranted: true\nwithdrawn: false\n", output);
    }
  }

  @Test
  void theInterceptorGuards() throws Exception {
    String out = folder.resolve("classes").toString();
    compile("-d", out, "-cp", System.getProperty("java.class.path"), "examples/RequireConsent.java");
    FakeConsent fake = new FakeConsent();
    Function<jakarta.servlet.http.HttpServletRequest, String> principalOf = request -> request.getHeader("X-User");
    try (URLClassLoader loader = new URLClassLoader(new URL[] {Path.of(out).toUri().toURL()}, getClass().getClassLoader())) {
      HandlerInterceptor guard =
          (HandlerInterceptor)
              loader
                  .loadClass("RequireConsent")
                  .getConstructor(Consent.class, String.class, Function.class)
                  .newInstance(fake, "newsletter", principalOf);
      assertEquals(401, ask(guard, null));
      assertEquals(403, ask(guard, "u-1"));
      fake.grant(ConsentWrite.of("u-1", "newsletter"));
      assertEquals(200, ask(guard, "u-1"));
      fake.setUnavailable(true);
      assertEquals(403, ask(guard, "u-1"));
    }
  }

  @Test
  void theFilterHandsOnWhoSigned() throws Exception {
    String out = folder.resolve("classes").toString();
    compile("-d", out, "-cp", System.getProperty("java.class.path"), "examples/AgentFilter.java");
    FakeConsent fake = new FakeConsent();
    Predicate<AgentAnswer> allows = answer -> !answer.status().equals("unverified");
    try (URLClassLoader loader = new URLClassLoader(new URL[] {Path.of(out).toUri().toURL()}, getClass().getClassLoader())) {
      Filter filter =
          (Filter)
              loader
                  .loadClass("AgentFilter")
                  .getConstructor(Consent.class, String.class, Predicate.class)
                  .newInstance(fake, "https://shop.example", allows);
      assertEquals("none", filtered(filter, null));
      assertEquals("403 {\"error\":\"agent-refused\"}", filtered(filter, "sig1=:AAAA:"));
      fake.setAgent(AgentAnswer.verified("https://agent.example"));
      assertEquals("verified", filtered(filter, "sig1=:AAAA:"));
      assertEquals("https://shop.example/offers", ((AgentRequest) fake.calls().get(0).args().get(0)).url());
    }
  }

  private static String filtered(Filter filter, String signature) throws Exception {
    MockHttpServletRequest request = new MockHttpServletRequest("GET", "/offers");
    if (signature != null) request.addHeader("Signature", signature);
    MockHttpServletResponse response = new MockHttpServletResponse();
    MockFilterChain chain = new MockFilterChain();
    filter.doFilter(request, response, chain);
    if (chain.getRequest() == null) return response.getStatus() + " " + response.getContentAsString();
    return ((AgentAnswer) request.getAttribute("gpd.agent")).status();
  }

  @Test
  void thePageIsRenderedAsReadmeAndExampleShow() throws Exception {
    String example = Files.readString(Path.of("examples/ShopPage.java"));
    String shown = blocks("java").get(5);
    assertTrue(shown.contains("consent.may("));
    assertTrue(example.replaceAll("(?m)^ {4}", "").contains(shown), shown);
    String out = folder.resolve("classes").toString();
    compile("-d", out, "-cp", System.getProperty("java.class.path"), "examples/ShopPage.java");
    Instant start = Instant.ofEpochSecond(1_767_225_600);
    FakeConsent fake = new FakeConsent();
    fake.setClock(Clock.fixed(start, ZoneOffset.UTC));
    fake.grant(ConsentWrite.of("u-1", "ads"));
    String cookie = fake.cookieFor("u-1");
    Function<HttpExchange, String> principalOf = exchange -> exchange.getRequestHeaders().getFirst("X-User");
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    try (URLClassLoader loader = new URLClassLoader(new URL[] {Path.of(out).toUri().toURL()}, getClass().getClassLoader())) {
      Class<?> page = loader.loadClass("ShopPage");
      server.createContext(
          "/", (HttpHandler) page.getConstructor(Consent.class, Function.class).newInstance(fake, principalOf));
      server.start();
      assertEquals("no ad", visit(server));
      assertEquals("ad", visit(server, "Cookie", cookie));
      assertEquals("no ad", visit(server, "Cookie", cookie, "Sec-GPC", "1"));
      assertEquals("ad", visit(server, "X-User", "u-1"));
      assertEquals("no ad", visit(server, "X-User", "u-2", "Cookie", cookie));
      fake.setClock(Clock.fixed(start.plusSeconds(3600), ZoneOffset.UTC));
      assertEquals("ad, a new cookie", visit(server, "Cookie", cookie));
    } finally {
      server.stop(0);
    }
  }

  private static String visit(HttpServer server, String... headers) throws Exception {
    URI address = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
    HttpRequest.Builder request = HttpRequest.newBuilder(address);
    if (headers.length > 0) request.headers(headers);
    HttpResponse<String> response = Transport.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofString());
    boolean isNew = response.headers().firstValue("Set-Cookie").orElse("").startsWith("gpd_consent=ey");
    return (response.body().contains("Seen elsewhere") ? "ad" : "no ad") + (isNew ? ", a new cookie" : "");
  }

  private static int ask(HandlerInterceptor guard, String user) throws Exception {
    MockHttpServletRequest request = new MockHttpServletRequest("GET", "/offers");
    if (user != null) request.addHeader("X-User", user);
    MockHttpServletResponse response = new MockHttpServletResponse();
    boolean passes = guard.preHandle(request, response, new Object());
    assertEquals(response.getStatus() == 200, passes);
    return response.getStatus();
  }
}
