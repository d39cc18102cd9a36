package dev.gpd.consent;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Runs all cases twice: with blocking calls, which are counted, and with futures. */
class ConformanceTest {
  private static final Set<String> PASSED = ConcurrentHashMap.newKeySet();
  private static List<String> cases;
  private static Servers servers;

  @BeforeAll
  static void start() throws IOException {
    String text = Files.readString(Servers.CONFORMANCE.resolve("cases.json"));
    cases =
        Plain.items(Plain.fields(Plain.json(text)).get("cases")).stream()
            .map(one -> (String) Plain.fields(one).get("name"))
            .toList();
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
      for (String name : cases) {
        told.append("gpd-case java ").append(PASSED.contains(name) ? "passed " : "failed ").append(name).append('\n');
      }
      Files.writeString(Path.of(report), told + line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
    servers.close();
  }

  private static Stream<DynamicTest> each(boolean isAsync) {
    return cases.stream()
        .map(
            name ->
                DynamicTest.dynamicTest(
                    name,
                    () -> {
                      new CaseRun(servers, isAsync).run(name);
                      if (!isAsync) PASSED.add(name);
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
  void unknownCallsFail() throws InterruptedException {
    Object problem = new CaseRun(servers, false).perform(Map.of("call", "guess")).get("problem");
    assertTrue(problem.toString().contains("there is no call guess"));
  }
}
