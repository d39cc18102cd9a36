package dev.gpd.consent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Runs all cases twice: with blocking calls, which are counted, and with futures. */
class ConformanceTest {
  private static final Set<String> PASSED = ConcurrentHashMap.newKeySet();
  private static List<?> cases;
  private static Servers servers;

  private static Map<String, Object> read(String name) throws IOException {
    return Schema.fields(Match.json(Files.readString(Servers.CONFORMANCE.resolve(name))));
  }

  private static List<String> problems(Map<String, Object> file) throws IOException {
    Map<String, Object> described = read("schema.json");
    Schema schema = new Schema(Schema.fields(described.get("$defs")));
    schema.check(file, described, "cases");
    Set<Object> names = new HashSet<>();
    for (Object one : Schema.items(file.get("cases"))) {
      Object name = Schema.fields(one).get("name");
      if (!names.add(name)) schema.problems.add(name + ": is there twice");
    }
    return schema.problems;
  }

  @BeforeAll
  static void start() throws IOException {
    Map<String, Object> file = read("cases.json");
    assertEquals(List.of(), problems(file));
    cases = Schema.items(file.get("cases"));
    servers = Servers.start();
  }

  /** bin/sdks.mjs compares this line between the languages. */
  @AfterAll
  static void report() throws IOException {
    String line = "gpd-conformance java " + PASSED.size() + "/" + cases.size() + "\n";
    System.out.print(line);
    String report = System.getenv("GPD_CONFORMANCE_REPORT");
    if (report != null && !report.isEmpty()) {
      StringBuilder told = new StringBuilder();
      for (Object one : cases) {
        String name = (String) Schema.fields(one).get("name");
        told.append("gpd-case java ").append(PASSED.contains(name) ? "passed " : "failed ").append(name).append('\n');
      }
      Files.writeString(Path.of(report), told + line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
    servers.close();
  }

  private static Stream<DynamicTest> each(boolean isAsync) {
    return cases.stream()
        .map(Schema::fields)
        .map(
            one ->
                DynamicTest.dynamicTest(
                    (String) one.get("name"),
                    () -> {
                      new CaseRun(one, servers, isAsync).run();
                      if (!isAsync) PASSED.add((String) one.get("name"));
                    }));
  }

  @TestFactory
  Stream<DynamicTest> blocking() {
    return each(false);
  }

  @TestFactory
  Stream<DynamicTest> futures() {
    return each(true);
  }

  @Test
  void unknownKeysFail() throws IOException {
    Function<Map<String, Object>, Map<String, Object>> aCase =
        file -> Schema.fields(Schema.items(file.get("cases")).get(0));
    Function<Map<String, Object>, Map<String, Object>> aStep =
        file -> Schema.fields(Schema.items(aCase.apply(file).get("steps")).get(0));
    Function<Map<String, Object>, Map<String, Object>> anExpectation =
        file -> Schema.fields(aStep.apply(file).get("expect"));
    for (var place : List.of(Function.<Map<String, Object>>identity(), aCase, aStep, anExpectation)) {
      Map<String, Object> file = read("cases.json");
      place.apply(file).put("surprise", 1.0);
      assertTrue(problems(file).toString().contains("surprise"));
    }
  }

  @Test
  void unknownMatchersCallsAndNamesFail() {
    assertThrows(AssertionError.class, () -> Match.difference("a", Map.of("$like", "a"), "result", false));
    assertThrows(AssertionError.class, () -> new Invocation().call("guess", Map.of(), CallOptions.NONE));
    assertThrows(AssertionError.class, () -> Match.substitute("${nobody}", Map.of()));
  }
}
