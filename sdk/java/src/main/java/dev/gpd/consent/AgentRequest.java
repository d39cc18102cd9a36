package dev.gpd.consent;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.Base64;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * A request whose signer is asked for.
 *
 * @param url the whole address: that of your site and path and query as they came
 * @param header the value of a header by its name, or null, such as {@code request::getHeader}
 * @param body as it came, if a {@code Content-Digest} that the signature covers is to be compared; or null
 */
public record AgentRequest(String method, String url, Function<String, String> header, byte[] body) {
  private static final List<String> SIGNATURE = List.of("signature", "signature-input", "signature-agent");
  private static final Pattern COVERED = Pattern.compile("\"([a-z0-9!#$%&'*+.^_`|~-]+)\"");

  public static AgentRequest of(String method, String url, Function<String, String> header) {
    return new AgentRequest(method, url, header, null);
  }

  boolean isSigned() {
    return SIGNATURE.stream().anyMatch(name -> header.apply(name) != null);
  }

  /** The headers of the signature and those that it covers. Others are not gpd's business. */
  String json() {
    Set<String> names = new LinkedHashSet<>(SIGNATURE);
    String input = header.apply("signature-input");
    if (input != null) COVERED.matcher(input).results().map(found -> found.group(1)).forEach(names::add);
    JsonObject headers = new JsonObject();
    for (String name : names) {
      String value = header.apply(name);
      if (value == null) continue;
      JsonArray values = new JsonArray();
      values.add(value);
      headers.add(name, values);
    }
    JsonObject described = new JsonObject();
    described.addProperty("method", method);
    described.addProperty("url", url);
    described.add("headers", headers);
    if (body != null) described.addProperty("body", Base64.getEncoder().encodeToString(body));
    return described.toString();
  }
}
