package dev.gpd.consent;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.IOException;
import java.net.ConnectException;
import java.net.http.HttpHeaders;
import java.net.http.HttpResponse;
import java.time.Clock;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/** A transport that answers as a gpd would that holds what the fake was told. */
final class FakeServer extends Transport {
  private static final Gson GSON = new GsonBuilder().serializeNulls().create();
  private static final HttpHeaders NO_HEADERS = HttpHeaders.of(Map.of(), (name, value) -> true);

  final List<FakeConsent.Call> calls = new ArrayList<>();
  final FakeLog log;
  final Map<String, Map<String, Object>> verdicts = new HashMap<>();
  AgentAnswer agent = new AgentAnswer("unverified", null, null, null, null, null, "key-set-unknown", null);
  boolean isUnavailable;
  /** The kind of the next error, or null, and its code. */
  ErrorKind nextKind;
  String nextCode;
  private final Clock clock;
  private final FakeSigner signer = new FakeSigner();
  private final Map<String, String> sessions = new HashMap<>();
  private final Map<String, Map<String, Object>> outcomes = new HashMap<>();
  private final List<Object> policies = new ArrayList<>();

  FakeServer(Settings settings) {
    super(settings, null, false);
    clock = settings.clock;
    log = new FakeLog(clock::instant);
  }

  @Override
  synchronized void note(String method, List<Object> args) {
    calls.add(new FakeConsent.Call(method, args));
  }

  @Override
  CompletableFuture<Reply> exchangeAsync(Call call, String base, HttpResponse.BodyHandler<byte[]> collecting) {
    try {
      return CompletableFuture.completedFuture(exchange(call, base, collecting));
    } catch (IOException broken) {
      return CompletableFuture.failedFuture(broken);
    }
  }

  @Override
  synchronized Reply exchange(Call call, String base, HttpResponse.BodyHandler<byte[]> collecting) throws IOException {
    ErrorKind kind = nextKind;
    nextKind = null;
    if (isUnavailable || kind == ErrorKind.NETWORK) throw new ConnectException();
    if (kind != null) return reply(statusOf(kind), Map.of("error", nextCode == null ? "" : nextCode));
    try {
      Map<String, Object> body = call.body() == null ? Map.of() : Json.object(Bytes.utf8(call.body()));
      Object value = answer(call, body == null ? Map.of() : body);
      return reply(call.row().statuses().stream().sorted().findFirst().orElse(200), value);
    } catch (FakeLog.Refusal refusal) {
      return reply(refusal.status, Map.of("error", refusal.getMessage()));
    }
  }

  private static Reply reply(int status, Object value) {
    return new Reply(status, NO_HEADERS, Bytes.utf8(GSON.toJson(value)));
  }

  private static int statusOf(ErrorKind kind) {
    return switch (kind) {
      case SERVER -> 500;
      case RESPONSE -> 204;
      default ->
          Wire.KIND_OF_STATUS.entrySet().stream()
              .filter(row -> row.getValue() == kind)
              .map(Map.Entry::getKey)
              .findFirst()
              .orElse(400);
    };
  }

  private Object answer(Call call, Map<String, Object> body) {
    String principalId = (String) body.get("principalId");
    return switch (call.operation()) {
      case "canProcess" -> log.decide(principalId, (String) body.get("purpose"));
      case "canProcessMany" -> Map.of("results", ((List<?>) body.get("checks")).stream().map(this::checked).toList());
      case "grant", "deny", "withdraw" -> log.write(call.operation(), writeOf(body), call.idempotencyKey());
      case "state" ->
          Map.of("principalId", principalId, "subject", FakeSigner.subjectOf(principalId), "purposes", log.state(principalId));
      case "history" ->
          log.history(principalId, (String) body.get("cursor"), body.get("limit") instanceof Long limit ? limit : 50);
      case "stateKeys" -> signer.jwks();
      case "refreshState" -> refreshed((String) body.get("state"), Boolean.TRUE.equals(body.get("gpc")));
      case "sessions.create" -> session(principalId);
      case "join" -> {
        String account = personOf(call);
        log.accounts.put(principalId, account);
        yield Map.of("principalId", account, "joined", principalId, "joinedAt", log.time(0));
      }
      case "link" -> {
        String token = (String) body.get("token");
        String person = personOf(call);
        if (!verdicts.containsKey(token)) throw new FakeLog.Refusal(401, "unauthenticated");
        yield Map.of("principalId", person, "requestId", token, "linkedAt", log.time(0));
      }
      case "erase" -> erased(personOf(call));
      case "agent" -> agentAsWire();
      case "decision" -> verdictOf(call);
      case "reportOutcome" -> reported((String) verdictOf(call).get("requestId"), body);
      case "purposes" -> Map.of("purposes", log.purposes());
      case "savePurposes" -> saved((List<?>) body.get("purposes"));
      case "policies" -> Map.of("policies", policies);
      case "publishPolicy" -> published(body);
      case "ping" -> Map.of("status", "ok", "version", "fake " + VERSION);
      // The fake has no log that could be proven.
      default -> throw new FakeLog.Refusal(404, "not-found");
    };
  }

  private Object agentAsWire() {
    Map<String, Object> wire = new HashMap<>();
    wire.put("status", agent.status());
    wire.put("agent", agent.agent());
    wire.put("keyid", agent.keyid());
    wire.put("tag", agent.tag());
    wire.put("intent", agent.intent());
    wire.put("expires", agent.expires());
    wire.put("reason", agent.reason());
    return wire;
  }

  private Object checked(Object item) {
    Map<?, ?> check = (Map<?, ?>) item;
    Map<String, Object> decision = log.decide((String) check.get("principalId"), (String) check.get("purpose"));
    decision.put("id", check.get("id"));
    return decision;
  }

  private static ConsentWrite writeOf(Map<String, Object> body) {
    List<String> purposes = ((List<?>) body.get("purposes")).stream().map(String.class::cast).toList();
    return new ConsentWrite(
        (String) body.get("principalId"),
        purposes,
        (Long) body.get("policyVersion"),
        (Boolean) body.get("gpc"),
        (Boolean) body.get("overGpc"));
  }

  Map<String, Object> sign(String principalId, boolean gpc) {
    FakeLog.VisitorView view = log.visitor(principalId, gpc);
    String state = signer.sign(principalId, view, clock.instant());
    return Map.of("state", state, "purposes", view.purposes(), "seq", view.seq());
  }

  private Object refreshed(String text, boolean gpc) {
    SignedState state = SignedState.parse(text);
    String principalId = state == null ? null : signer.principalOf(state);
    Map<String, Object> current = principalId == null ? Map.of("seq", 0L) : sign(principalId, gpc);
    // gpd does not know a person who has never chosen.
    if (current.get("seq").equals(0L)) throw new FakeLog.Refusal(404, "no-data");
    return current;
  }

  private Object session(String principalId) {
    String token = "gpd_ps_fake" + calls.size();
    sessions.put(token, principalId);
    String subject = FakeSigner.subjectOf(principalId);
    return Map.of("token", token, "principalId", principalId, "subject", subject, "expiresAt", log.time(900));
  }

  private String personOf(Call call) {
    String person = sessions.get(call.token());
    if (person == null) throw new FakeLog.Refusal(401, "unauthenticated");
    return person;
  }

  private Object erased(String person) {
    long count = log.erase(person);
    Object scope = Map.of("scope", "consent", "action", count > 0 ? "erased" : "none", "count", count);
    return Map.of(
        "receiptId", "era_fake" + calls.size(), "tenant", "fake", "subject", FakeSigner.subjectOf(person),
        "requestedBy", "subject", "erasedAt", log.time(0), "scopes", List.of(scope), "incomplete", false);
  }

  private Map<String, Object> verdictOf(Call call) {
    Map<String, Object> verdict = verdicts.get(call.path().split("/")[3]);
    if (verdict == null) throw new FakeLog.Refusal(404, "no-such-decision");
    return verdict;
  }

  /** Keeps the first report; times are compared as texts. */
  private Object reported(String requestId, Map<String, Object> body) {
    Map<String, Object> first = new HashMap<>(Map.of("requestId", requestId, "at", log.time(0)));
    first.putAll(body);
    Map<String, Object> stored = outcomes.computeIfAbsent(requestId, id -> first);
    boolean isSame = stored.get("outcome").equals(body.get("outcome")) && stored.get("at").equals(body.getOrDefault("at", stored.get("at")));
    if (!isSame) throw new FakeLog.Refusal(409, "idempotency-conflict");
    return stored;
  }

  private Object saved(List<?> definitions) {
    Set<String> ids = new LinkedHashSet<>();
    for (Object one : log.purposes()) ids.add((String) ((Map<?, ?>) one).get("id"));
    for (Object item : definitions) {
      Map<?, ?> one = (Map<?, ?>) item;
      String id = String.valueOf(one.get("id"));
      if (!id.matches("[a-z0-9][a-z0-9-]{0,63}")) throw new FakeLog.Refusal(400, "invalid-request");
      String gpc = one.get("gpc") instanceof String policy ? policy : "opt-out";
      log.setGpcPolicy(id, FakeConsent.GpcPolicy.valueOf(gpc.toUpperCase(java.util.Locale.ROOT).replace('-', '_')));
      log.ttlDays.put(id, one.get("ttlDays") instanceof Long days ? days.doubleValue() : 180.0);
      ids.add(id);
    }
    log.known = ids;
    return Map.of("purposes", log.purposes(), "entries", List.of());
  }

  private Object published(Map<String, Object> body) {
    long version = policies.size() + 1L;
    String sha256 = Bytes.hex(Bytes.sha256(Bytes.utf8((String) body.get("text"))));
    Map<String, Object> policy = new HashMap<>(body);
    policy.putAll(Map.of("version", version, "sha256", sha256, "publishedAt", log.time(0)));
    policies.add(Map.copyOf(policy));
    policy.putAll(log.publish(version, Boolean.TRUE.equals(body.get("material"))));
    return policy;
  }
}
