package dev.gpd.consent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import java.io.IOException;
import java.io.StringWriter;
import java.net.URISyntaxException;
import java.net.URLClassLoader;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.web.servlet.HandlerInterceptor;

/** Follows the README word by word in an empty folder, with the library as a module, and runs the examples. */
class ReadmeTest {
  private static final String IMPORTS =
      "import dev.gpd.consent.*;\nimport java.util.*;\nimport java.util.concurrent.*;\n";

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
    assertEquals(8, code.size());
    String ask = code.get(0);
    assertTrue(ask.contains("isAllowed"));
    String rest =
        IMPORTS
            + ("class Rest {\n" + code.get(6))
            + "public static void main(String[] args) {\n ConsentClient consent = ConsentClient.fromEnv();\n"
            + (code.get(3) + code.get(1) + code.get(2) + code.get(5) + code.get(4) + code.get(7))
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

  private static int ask(HandlerInterceptor guard, String user) throws Exception {
    MockHttpServletRequest request = new MockHttpServletRequest("GET", "/offers");
    if (user != null) request.addHeader("X-User", user);
    MockHttpServletResponse response = new MockHttpServletResponse();
    boolean passes = guard.preHandle(request, response, new Object());
    assertEquals(response.getStatus() == 200, passes);
    return response.getStatus();
  }
}
