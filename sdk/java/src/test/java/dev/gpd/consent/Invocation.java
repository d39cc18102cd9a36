package dev.gpd.consent;

import com.google.gson.ExclusionStrategy;
import com.google.gson.FieldAttributes;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonPrimitive;
import com.google.gson.JsonSerializer;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.stream.Stream;

/** Translates the calls and arguments of a case to those of this package, and results to the JSON of the wire. */
final class Invocation {
  private static final Gson GSON =
      new GsonBuilder()
          .serializeNulls()
          .registerTypeAdapter(
              Instant.class, (JsonSerializer<Instant>) (time, type, context) -> new JsonPrimitive(time.toString()))
          .setExclusionStrategies(
              new ExclusionStrategy() {
                @Override
                public boolean shouldSkipField(FieldAttributes field) {
                  return field.getDeclaredClass() == ConsentException.class;
                }

                @Override
                public boolean shouldSkipClass(Class<?> type) {
                  return false;
                }
              })
          .create();

  /** The client of the case, or its fake; configure and fromEnv replace it. */
  Consent client;

  /** The clock of the client during the next call. */
  Clock clock = Clock.systemUTC();

  /** The client's clock, which is that of each step. */
  final Clock stepClock = new StepClock();

  private final class StepClock extends Clock {
    @Override
    public ZoneId getZone() {
      return ZoneOffset.UTC;
    }

    @Override
    public Clock withZone(ZoneId zone) {
      return this;
    }

    @Override
    public Instant instant() {
      return clock.instant();
    }
  }

  private static Object wire(Object result) {
    if (result instanceof Optional<?> optional) return wire(optional.orElse(null));
    if (result instanceof Verdict verdict) {
      Map<String, Object> fields = Plain.fields(Plain.json(GSON.toJson(verdict.fields())));
      // The value of the accessor, not of the raw field.
      fields.put("attested", Plain.json(GSON.toJson(verdict.attested())));
      return fields;
    }
    if (result instanceof Advice) return result.toString();
    Object json = Plain.json(GSON.toJson(result));
    if (result instanceof ConsentState) {
      for (Object item : Plain.items(Plain.fields(json).get("purposes"))) {
        Map<String, Object> fields = Plain.fields(item);
        fields.putAll(Plain.fields(fields.remove("decision")));
      }
    }
    return json;
  }

  private static String text(Map<String, Object> args, String name) {
    return (String) args.get(name);
  }

  private static Long whole(Object value) {
    return value == null ? null : ((Double) value).longValue();
  }

  private static Duration millis(Object value) {
    return Duration.ofMillis(whole(value));
  }

  private static Duration deadline(Map<String, Object> args) {
    return args.get("deadlineMs") == null ? Duration.ofMillis(500) : millis(args.get("deadlineMs"));
  }

  private static AgentRequest agent(Map<String, Object> args) {
    byte[] body = args.get("body") == null ? null : Bytes.utf8(text(args, "body"));
    return new AgentRequest(text(args, "method"), text(args, "url"), headers(args), body);
  }

  private static Check check(Object value) {
    Map<String, Object> args = Plain.fields(value);
    return new Check((String) args.get("principalId"), (String) args.get("purpose"), whole(args.get("minSeq")));
  }

  private static List<String> texts(Object value) {
    List<String> texts = new ArrayList<>();
    for (Object item : Plain.items(value)) texts.add((String) item);
    return texts;
  }

  /** As a servlet does it: names without regard to case. */
  private static Function<String, String> headers(Map<String, Object> args) {
    Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    Plain.fields(args.get("headers")).forEach((name, value) -> headers.put(name, (String) value));
    return headers::get;
  }

  void configure(Map<String, Object> args) {
    ConsentClientBuilder builder = ConsentClient.builder().clock(stepClock);
    args.forEach(
        (name, value) -> {
          switch (name) {
            case "url" -> {
              if (value instanceof String text) builder.url(text);
              else builder.urls(texts(value));
            }
            case "key" -> builder.key((String) value);
            case "timeoutMs" -> builder.timeout(millis(value));
            case "writeTimeoutMs" -> builder.writeTimeout(millis(value));
            case "retries" -> builder.retries(whole(value).intValue());
            case "cookieDomain" -> builder.cookieDomain((String) value);
            case "onUnavailable" -> builder.onUnavailable(onUnavailable(value));
            default -> throw new AssertionError("there is no option " + name);
          }
        });
    client = builder.build();
  }

  /** Null stands for an unknown word, because a Java program cannot pass one. */
  private static OnUnavailable onUnavailable(Object value) {
    return value.equals("deny") ? OnUnavailable.DENY : value.equals("error") ? OnUnavailable.ERROR : null;
  }

  Object call(String name, Map<String, Object> args, CallOptions options) {
    return wire(blocking(name, args, options));
  }

  private Object blocking(String name, Map<String, Object> args, CallOptions options) {
    String principalId = (String) args.get("principalId");
    return switch (name) {
      case "isAllowed" -> client.isAllowed(check(args), options);
      case "canProcess" -> client.canProcess(check(args), options);
      case "canProcessMany" -> client.canProcessMany(checks(args), options);
      case "grant" -> client.grant(write(args), options);
      case "deny" -> client.deny(write(args), options);
      case "withdraw" -> client.withdraw(write(args), options);
      case "state" -> client.state(principalId, options);
      case "history" -> client.history(principalId, page(args), options);
      case "sessions.create" -> client.sessions().create(principalId, options);
      case "historyAll" -> client.historyAll(principalId, page(args).limit(), options).toList();
      case "join" -> client.join(text(args, "session"), principalId, text(args, "principalSecret"), options);
      case "link" -> client.link(text(args, "session"), text(args, "token"), options);
      case "erase" -> client.erase(text(args, "session"), options);
      case "purposes" -> client.purposes(options);
      case "savePurposes" ->
          client.savePurposes(definitions(args.get("purposes")), (Boolean) args.get("material"), options);
      case "policies" -> client.policies(options);
      case "publishPolicy" -> client.publishPolicy(text(args, "text"), (Boolean) args.get("material"), options);
      case "checkpoint" -> client.checkpoint(options);
      case "vkey" -> client.vkey(options);
      case "exportLog" -> client.exportLog(options);
      case "signWebhook" ->
          Webhooks.sign(
              Bytes.utf8(text(args, "body")), text(args, "secret"), text(args, "id"), Instant.ofEpochSecond(whole(args.get("now"))));
      case "receipt" -> client.receipt(whole(args.get("seq")), options);
      case "proof" -> client.proof(whole(args.get("seq")), options);
      case "decision" -> client.decision((String) args.get("requestId"), options);
      case "checkout" -> client.checkout(text(args, "requestId"), text(args, "context"), deadline(args));
      case "reportOutcome" ->
          client.reportOutcome(text(args, "requestId"), text(args, "outcome"), text(args, "at"), options);
      case "readState" -> client.readState(text(args, "cookie"), options).orElse(null);
      case "currentState" -> client.currentState(text(args, "cookie"), options);
      case "may" -> client.may(headers(args), texts(args.get("purposes")), principalId, options);
      case "agent" -> client.agent(agent(args), options);
      case "ping" -> client.ping(options);
      default -> other(name, args);
    };
  }

  /** Null for methods without a future. */
  CompletableFuture<?> future(String name, Map<String, Object> args, CallOptions options) {
    String principalId = (String) args.get("principalId");
    return switch (name) {
      case "isAllowed" -> client.isAllowedAsync(check(args), options);
      case "canProcess" -> client.canProcessAsync(check(args), options);
      case "canProcessMany" -> client.canProcessManyAsync(checks(args), options);
      case "grant" -> client.grantAsync(write(args), options);
      case "deny" -> client.denyAsync(write(args), options);
      case "withdraw" -> client.withdrawAsync(write(args), options);
      case "state" -> client.stateAsync(principalId, options);
      case "history" -> client.historyAsync(principalId, page(args), options);
      case "sessions.create" -> client.sessions().createAsync(principalId, options);
      case "join" -> client.joinAsync(text(args, "session"), principalId, text(args, "principalSecret"), options);
      case "link" -> client.linkAsync(text(args, "session"), text(args, "token"), options);
      case "erase" -> client.eraseAsync(text(args, "session"), options);
      case "purposes" -> client.purposesAsync(options);
      case "savePurposes" ->
          client.savePurposesAsync(definitions(args.get("purposes")), (Boolean) args.get("material"), options);
      case "policies" -> client.policiesAsync(options);
      case "publishPolicy" -> client.publishPolicyAsync(text(args, "text"), (Boolean) args.get("material"), options);
      case "checkpoint" -> client.checkpointAsync(options);
      case "vkey" -> client.vkeyAsync(options);
      case "exportLog" -> client.exportLogAsync(options);
      case "receipt" -> client.receiptAsync(whole(args.get("seq")), options);
      case "proof" -> client.proofAsync(whole(args.get("seq")), options);
      case "decision" -> client.decisionAsync((String) args.get("requestId"), options);
      case "checkout" -> client.checkoutAsync(text(args, "requestId"), text(args, "context"), deadline(args));
      case "reportOutcome" ->
          client.reportOutcomeAsync(text(args, "requestId"), text(args, "outcome"), text(args, "at"), options);
      case "readState" -> client.readStateAsync(text(args, "cookie"), options);
      case "currentState" -> client.currentStateAsync(text(args, "cookie"), options);
      case "may" -> client.mayAsync(headers(args), texts(args.get("purposes")), principalId, options);
      case "agent" -> client.agentAsync(agent(args), options);
      case "ping" -> client.pingAsync(options);
      default -> null;
    };
  }

  /** Opens a fake with the purposes of the conformance server. */
  private void useFake(OnUnavailable onUnavailable) {
    FakeConsent fake = new FakeConsent(onUnavailable);
    fake.setClock(stepClock);
    fake.setGpcPolicy("support", FakeConsent.GpcPolicy.IGNORE);
    fake.setGpcPolicy("offers", FakeConsent.GpcPolicy.ASK);
    client = fake;
  }

  private FakeConsent fake() {
    return (FakeConsent) client;
  }

  private static ErrorKind kindOf(String name) {
    return Stream.of(ErrorKind.values()).filter(kind -> kind.toString().equals(name)).findFirst().orElseThrow();
  }

  /** A verdict of now, as a fake of the other languages makes one. */
  private Verdict verdict(Map<String, Object> args) {
    String named = args.get("class") == null ? "human" : text(args, "class");
    Double score = (Double) args.get("suspectScore");
    return new Verdict(text(args, "requestId"), named, "ok", null, null, score, clock.instant().toString(), false, Map.of());
  }

  static Object asWire(Object result) {
    return wire(result);
  }

  private Object other(String name, Map<String, Object> args) {
    switch (name) {
      case "fake.setUnavailable" -> fake().setUnavailable((Boolean) args.get("unavailable"));
      case "fake.setNextError" -> fake().setNextError(kindOf(text(args, "kind")), text(args, "code"));
      case "fake.setTtlDays" -> fake().setTtlDays(text(args, "purpose"), (Double) args.get("days"));
      case "fake.setPurposes" -> fake().setPurposes(texts(args.get("purposes")).toArray(String[]::new));
      case "fake.setDecision" -> fake().setDecision(text(args, "requestId"), verdict(args));
      case "close" -> client.close();
      case "configure" -> configure(args);
      case "fake" -> useFake("error".equals(args.get("onUnavailable")) ? OnUnavailable.ERROR : OnUnavailable.DENY);
      case "cookieFor" -> {
        return fake().cookieFor(text(args, "principalId"));
      }
      case "fromEnv" -> client = ConsentClient.builder().env(environment(args)).build();
      case "verifyProof" -> {
        return verifyProof(args);
      }
      case "verifyConsistency" -> verifyConsistency(args);
      case "verifyWebhook" -> {
        return verifyWebhook(args);
      }
      default -> throw new AssertionError("there is no call " + name);
    }
    return null;
  }

  private static List<PurposeDefinition> definitions(Object value) {
    List<PurposeDefinition> definitions = new ArrayList<>();
    for (Object item : Plain.items(value)) {
      Map<String, Object> one = Plain.fields(item);
      definitions.add(
          new PurposeDefinition(text(one, "id"), text(one, "title"), null, null, null, whole(one.get("ttlDays")), null, null));
    }
    return definitions;
  }

  private static Map<String, String> environment(Map<String, Object> args) {
    Map<String, String> environment = new LinkedHashMap<>();
    Plain.fields(args.get("env")).forEach((name, value) -> environment.put(name, (String) value));
    return environment;
  }

  private static List<Check> checks(Map<String, Object> args) {
    return Plain.items(args.get("checks")).stream().map(Invocation::check).toList();
  }

  private static ConsentWrite write(Map<String, Object> args) {
    String principalId = (String) args.get("principalId");
    Boolean over = (Boolean) args.get("overGpc");
    return new ConsentWrite(
        principalId, texts(args.get("purposes")), whole(args.get("policyVersion")), (Boolean) args.get("gpc"), over);
  }

  private static History.Page page(Map<String, Object> args) {
    Long limit = whole(args.get("limit"));
    return new History.Page((String) args.get("cursor"), limit == null ? null : limit.intValue());
  }

  private static Object verifyProof(Map<String, Object> args) {
    ProofOptions options =
        new ProofOptions(
            (String) args.get("vkey"),
            whole(args.get("seq")),
            (String) args.get("hash"),
            (String) args.get("type"),
            (String) args.get("purpose"),
            args.get("witnesses") == null ? null : texts(args.get("witnesses")),
            args.get("minWitnesses") == null ? null : whole(args.get("minWitnesses")).intValue());
    return Proofs.verify((String) args.get("proof"), options);
  }

  private static void verifyConsistency(Map<String, Object> args) {
    Proofs.verifyConsistency(
        whole(args.get("oldSize")),
        (String) args.get("oldRoot"),
        whole(args.get("newSize")),
        (String) args.get("newRoot"),
        texts(args.get("proof")));
  }

  private static Object verifyWebhook(Map<String, Object> args) {
    Map<String, List<String>> headers = new LinkedHashMap<>();
    Plain.fields(args.get("headers")).forEach((name, value) -> headers.put(name, List.of((String) value)));
    WebhookOptions options =
        WebhookOptions.secrets(texts(args.get("secrets")).toArray(String[]::new))
            .now(Instant.ofEpochSecond(whole(args.get("now"))));
    if (args.get("toleranceSeconds") != null) {
      options = options.tolerance(Duration.ofSeconds(whole(args.get("toleranceSeconds"))));
    }
    return Webhooks.verify(Bytes.utf8((String) args.get("body")), headers, options);
  }
}
