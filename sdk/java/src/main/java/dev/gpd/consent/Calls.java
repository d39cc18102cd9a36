package dev.gpd.consent;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;

/** Turns method calls into requests, and answers into results. */
final class Calls {
  private final Transport transport;
  private final Settings settings;

  Calls(Transport transport) {
    this.transport = transport;
    this.settings = transport.settings;
  }

  static boolean isNone(List<Check> checks) {
    return checks != null && checks.isEmpty();
  }

  private static <T> T rethrow(ConsentException error) {
    throw error;
  }

  private <T> Pending<T> pending(
      CallOptions options,
      Supplier<Call> createCall,
      Function<Answer, T> result,
      Function<ConsentException, T> otherwise) {
    return new Pending<>(
        () -> {
          Call call = createCall.get();
          String name = call.name();
          if (options == null) throw ConsentException.hinted(name, ErrorKind.CONFIG, "there are no options");
          if (options.timeout() != null) ConsentClientBuilder.checkCallTimeout(name, options.timeout());
          return transport.begin(call, options);
        },
        result,
        otherwise);
  }

  /** Reads an answer with the reader {@code shape}. */
  private static <T> T read(Call call, Answer answer, Function<Fields, T> shape) {
    Map<String, Object> body = Json.object(answer.body());
    if (body == null) throw call.malformed(answer);
    try {
      return shape.apply(new Fields(body));
    } catch (Fields.Malformed malformed) {
      throw call.malformed(answer);
    }
  }

  private <T> Pending<T> json(CallOptions options, Supplier<Call> createCall, Call like, Function<Fields, T> shape) {
    return pending(options, createCall, answer -> read(like, answer, shape), Calls::rethrow);
  }

  /** The only place where an error becomes a denial. */
  private Decision undecided(ConsentException error) {
    if (error.isUndecided() && settings.onUnavailable == OnUnavailable.DENY) return Decision.unavailable(error);
    throw error;
  }

  private Call get(String name, String path) {
    return Call.get(name, path, settings.timeout);
  }

  private Call post(String name, String path, JsonObject body, String... principals) {
    return Call.post(name, path, body, settings.timeout, List.of(principals));
  }

  Pending<Boolean> isAllowed(Check check, CallOptions options) {
    Pending<Decision> decision = check("isAllowed", check, options);
    return new Pending<>(
        decision.begin(),
        answer -> decision.result().apply(answer).allowed(),
        error -> decision.otherwise().apply(error).allowed());
  }

  Pending<Decision> canProcess(Check check, CallOptions options) {
    return check("canProcess", check, options);
  }

  private Pending<Decision> check(String name, Check check, CallOptions options) {
    String path = "/v1/consent/can-process";
    return pending(
        options,
        () -> {
          Rules.check(name, check);
          JsonObject body = bodyOf(check);
          if (check.minSeq() != null) body.addProperty("minSeq", check.minSeq());
          return post(name, path, body, check.principalId());
        },
        answer -> read(get(name, path), answer, Fields::decision),
        this::undecided);
  }

  private static JsonObject bodyOf(Check check) {
    JsonObject body = new JsonObject();
    body.addProperty("principalId", check.principalId());
    body.addProperty("purpose", check.purpose());
    return body;
  }

  Pending<StateKeys.KeySet> stateKeys(String name, CallOptions options) {
    Call call = get(name, "/v1/consent/state-keys");
    return json(options, () -> call, call, StateKeys::read);
  }

  Pending<Visitors.Refreshed> refresh(String name, SignedState state, boolean gpc, CallOptions options) {
    String path = "/v1/consent/state/refresh";
    Supplier<Call> createCall =
        () -> {
          JsonObject body = new JsonObject();
          body.addProperty("state", state.text());
          if (gpc) body.addProperty("gpc", true);
          return post(name, path, body, state.text());
        };
    return json(options, createCall, get(name, path), Visitors.Refreshed::read);
  }

  Pending<List<Decision>> canProcessMany(List<Check> checks, CallOptions options) {
    return checkMany("canProcessMany", checks, options);
  }

  Pending<List<Decision>> checkMany(String name, List<Check> checks, CallOptions options) {
    String path = "/v1/consent/can-process/batch";
    return pending(
        options,
        () -> {
          Rules.batch(name, checks);
          JsonArray items = new JsonArray();
          for (Check check : checks) {
            JsonObject item = bodyOf(check);
            item.addProperty("id", String.valueOf(items.size()));
            items.add(item);
          }
          JsonObject body = new JsonObject();
          body.add("checks", items);
          return post(name, path, body, checks.stream().map(Check::principalId).toArray(String[]::new));
        },
        answer -> {
          Call like = get(name, path);
          Map<String, Decision> found = read(like, answer, Shapes::batch);
          List<Decision> decisions = new ArrayList<>();
          for (int i = 0; i < checks.size(); i++) {
            Decision decision = found.get(String.valueOf(i));
            decisions.add(decision == null ? undecided(like.malformed(answer)) : decision);
          }
          return List.copyOf(decisions);
        },
        error -> {
          Decision denial = undecided(error);
          return checks.stream().map(check -> denial).toList();
        });
  }

  Pending<WriteResult> write(String name, ConsentWrite write, CallOptions options) {
    String path = "/v1/consent/" + name;
    return json(
        options,
        () -> {
          Rules.write(name, write);
          String namedKey = options == null ? null : options.idempotencyKey();
          if (namedKey != null) Rules.idempotencyKey(name, namedKey);
          JsonObject body = new JsonObject();
          body.addProperty("principalId", write.principalId());
          JsonArray purposes = new JsonArray();
          write.purposes().forEach(purposes::add);
          body.add("purposes", purposes);
          if (write.policyVersion() != null) body.addProperty("policyVersion", write.policyVersion());
          if (write.gpc() != null) body.addProperty("gpc", write.gpc());
          if (write.overGpc() != null) body.addProperty("overGpc", write.overGpc());
          String key = namedKey == null ? UUID.randomUUID().toString() : namedKey;
          return post(name, path, body, write.principalId()).writing(settings.writeTimeout, key);
        },
        get(name, path).writing(settings.writeTimeout, null),
        Shapes::writeResult);
  }

  private Call ofPrincipal(String name, String path, String principalId, History.Page page) {
    Rules.principal(name, principalId);
    JsonObject body = new JsonObject();
    body.addProperty("principalId", principalId);
    if (page.cursor() != null) body.addProperty("cursor", page.cursor());
    if (page.limit() != null) body.addProperty("limit", page.limit());
    return post(name, path, body, principalId);
  }

  Pending<ConsentState> state(String principalId, CallOptions options) {
    String path = "/v1/consent/state";
    Supplier<Call> createCall = () -> ofPrincipal("state", path, principalId, History.Page.FIRST);
    return json(options, createCall, get("state", path), Shapes::state);
  }

  Pending<History> history(String principalId, History.Page page, CallOptions options) {
    String path = "/v1/consent/history";
    Supplier<Call> createCall =
        () -> ofPrincipal("history", path, principalId, page == null ? History.Page.FIRST : page);
    return json(options, createCall, get("history", path), Shapes::history);
  }

  Pending<Session> session(String principalId, CallOptions options) {
    String name = "sessions.create";
    String path = "/v1/sessions";
    Supplier<Call> createCall =
        () -> ofPrincipal(name, path, principalId, History.Page.FIRST).writing(settings.writeTimeout, null);
    return json(options, createCall, get(name, path).writing(settings.writeTimeout, null), Shapes::session);
  }

  Pending<Receipt> receipt(long seq, CallOptions options) {
    Call call = get("receipt", "/v1/consent/receipts/" + seq);
    return json(options, () -> withSeq(call, seq), call, Shapes::receipt);
  }

  Pending<String> proof(long seq, CallOptions options) {
    Call call = get("proof", "/v1/consent/proofs/" + seq).accepting("text/plain");
    return pending(
        options,
        () -> withSeq(call, seq),
        answer -> {
          if (answer.body() == null) throw call.malformed(answer);
          return new String(answer.body(), StandardCharsets.UTF_8);
        },
        Calls::rethrow);
  }

  private static Call withSeq(Call call, long seq) {
    Rules.seq(call.name(), seq);
    return call;
  }

  Pending<Verdict> decision(String requestId, CallOptions options) {
    Call call = get("decision", "/v1/decisions/" + requestId);
    Supplier<Call> createCall =
        () -> {
          Rules.requestId("decision", requestId);
          return call;
        };
    return json(options, createCall, call, fields -> Shapes.verdict(fields, requestId));
  }

  Pending<ReportedOutcome> reportOutcome(String requestId, String outcome, String at, CallOptions options) {
    String name = "reportOutcome";
    String path = "/v1/decisions/" + requestId + "/outcome";
    Supplier<Call> createCall =
        () -> {
          Rules.report(name, requestId, outcome);
          JsonObject body = new JsonObject();
          body.addProperty("outcome", outcome);
          if (at != null) body.addProperty("at", at);
          return post(name, path, body).reporting(settings.writeTimeout);
        };
    return json(options, createCall, get(name, path), fields -> Shapes.outcome(fields, requestId, outcome));
  }

  Pending<Health> ping(CallOptions options) {
    Call call = get("ping", "/healthz").open();
    return json(options, () -> call, call, Shapes::health);
  }
}
