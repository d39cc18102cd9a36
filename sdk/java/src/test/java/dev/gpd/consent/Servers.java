package dev.gpd.consent;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;

/** The line that serve.mjs prints. It is started unless GPD_CONFORMANCE names running servers. */
record Servers(Map<String, Object> addresses, Process process) implements AutoCloseable {
  static final Path CONFORMANCE = Path.of("..", "conformance");

  static Servers start() throws IOException {
    String running = System.getenv("GPD_CONFORMANCE");
    if (running != null && !running.isEmpty()) return new Servers(Plain.fields(Plain.json(running)), null);
    Process process =
        new ProcessBuilder("node", CONFORMANCE.resolve("serve.mjs").toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    String line = lines.readLine();
    if (line == null) throw new IOException("serve.mjs ended before it told its addresses");
    return new Servers(Plain.fields(Plain.json(line)), process);
  }

  String text(String name) {
    return (String) addresses.get(name);
  }

  String key(String name) {
    return (String) Plain.fields(addresses.get("keys")).get(name);
  }

  @Override
  public void close() throws IOException {
    if (process == null) return;
    process.getOutputStream().close();
    try {
      process.waitFor();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
