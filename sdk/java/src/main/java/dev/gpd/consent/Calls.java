package dev.gpd.consent;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;

/** Each method as a call, and the result that its answer has. */
final class Calls extends Requests {
  private final Settings settings;

  Calls(Transport transport) {
    super(transport);
    this.settings = transport.settings;
  }

  /** The only place where an error becomes a denial. */
  private Decision undecided(ConsentException error) {
    if (error.isUndecided() && settings.onUnavailable == OnUnavailable.DENY) return Decision.unavailable(error);
    throw error;
  }

  private static Decision decision(Map<String, Object> body) {
    return new Fields(body).decision();
  }

  private Pending<Decision> check(String name, Check check, CallOptions options) {
    return pending(
        name,
        options,
        () -> {
          Rules.check(name, check);
          JsonObject body =
              object("principalId", check.principalId(), "purpose", check.purpose(), "minSeq", check.minSeq());
          return Call.of(name, "canProcess", null).sending(body.toString(), check.principalId()).noting(check);
        },
        answer -> read(name, "canProcess", answer, Calls::decision),
        this::undecided);
  }

  Pending<Boolean> isAllowed(Check check, CallOptions options) {
    return check("isAllowed", check, options).map(Decision::allowed);
  }

  Pending<Decision> canProcess(Check check, CallOptions options) {
    return check("canProcess", check, options);
  }

  Pending<StateKeys.KeySet> stateKeys(String name, CallOptions options) {
    Supplier<Call> createCall = () -> Call.of(name, "stateKeys", null);
    return pending(
        name,
        options,
        createCall,
        answer -> {
          Map<String, Object> body = Json.object(answer.body());
          try {
            if (body != null) return StateKeys.read(new Fields(body));
          } catch (Fields.Malformed malformed) {
            // Below.
          }
          throw ConsentException.malformed(name, answer);
        },
        Requests::rethrow);
  }

  Pending<Visitors.Refreshed> refresh(String name, SignedState state, boolean gpc, CallOptions options) {
    JsonObject body = object("state", state.text(), "gpc", gpc ? Boolean.TRUE : null);
    Supplier<Call> createCall =
        () -> Call.of(name, "refreshState", null).sending(body.toString(), state.text());
    return json(name, "refreshState", options, createCall, answer -> Visitors.Refreshed.read(new Fields(answer)));
  }

  Pending<List<Decision>> canProcessMany(List<Check> checks, CallOptions options) {
    return checkMany("canProcessMany", checks, options, true);
  }

  /** @param isNoted false for a call that is part of another method */
  Pending<List<Decision>> checkMany(String name, List<Check> checks, CallOptions options, boolean isNoted) {
    return pending(
        name,
        options,
        () -> {
          Rules.batch(name, checks);
          JsonArray items = new JsonArray();
          for (Check check : checks) {
            items.add(
                object("id", String.valueOf(items.size()), "principalId", check.principalId(), "purpose", check.purpose()));
          }
          JsonObject body = new JsonObject();
          body.add("checks", items);
          String[] principals = checks.stream().map(Check::principalId).toArray(String[]::new);
          Call call = Call.of(name, "canProcessMany", null).sending(body.toString(), principals);
          return isNoted ? call.noting(checks) : call;
        },
        answer -> {
          Map<String, Object> body = Json.object(answer.body());
          if (body == null || !(body.get("results") instanceof List<?> results)) {
            throw ConsentException.malformed(name, answer);
          }
          Map<String, Decision> found = byId(results);
          List<Decision> decisions = new ArrayList<>();
          for (int i = 0; i < checks.size(); i++) {
            Decision decision = found.get(String.valueOf(i));
            decisions.add(decision == null ? undecided(ConsentException.malformed(name, answer)) : decision);
          }
          return List.copyOf(decisions);
        },
        error -> {
          Decision denial = undecided(error);
          return checks.stream().map(check -> denial).toList();
        });
  }

  /** Null for an id that appears twice or whose decision is malformed. */
  private static Map<String, Decision> byId(List<?> results) {
    Object shape = Wire.OPERATIONS.get("canProcess").shape();
    Map<String, Decision> found = new HashMap<>();
    for (Object item : results) {
      if (!(item instanceof Map<?, ?> result) || !(result.get("id") instanceof String id)) continue;
      boolean isDecision = !found.containsKey(id) && Shape.matches(item, shape);
      found.put(id, isDecision ? Fields.ofValue(item).decision() : null);
    }
    return found;
  }

  Pending<WriteResult> write(String name, ConsentWrite write, CallOptions options) {
    return json(
        name,
        options,
        () -> {
          Rules.write(name, write);
          String namedKey = options == null ? null : options.idempotencyKey();
          if (namedKey != null) Rules.idempotencyKey(name, namedKey);
          JsonObject body = object("principalId", write.principalId());
          JsonArray purposes = new JsonArray();
          write.purposes().forEach(purposes::add);
          body.add("purposes", purposes);
          object("policyVersion", write.policyVersion(), "gpc", write.gpc(), "overGpc", write.overGpc())
              .entrySet()
              .forEach(field -> body.add(field.getKey(), field.getValue()));
          String key = namedKey == null ? UUID.randomUUID().toString() : namedKey;
          return Call.of(name, name, null).sending(body.toString(), write.principalId()).under(key).noting(write);
        },
        WriteResult.class);
  }

  Pending<ConsentState> state(String principalId, CallOptions options) {
    return json(
        "state",
        "state",
        options,
        () -> {
          Rules.principal("state", principalId);
          JsonObject body = object("principalId", principalId);
          return Call.of("state", "state", null).sending(body.toString(), principalId).noting(principalId);
        },
        Calls::readState);
  }

  private static ConsentState readState(Map<String, Object> body) {
    Fields fields = new Fields(body);
    List<ConsentState.PurposeState> purposes = new ArrayList<>();
    for (Object item : fields.list("purposes")) {
      Fields one = Fields.ofValue(item);
      purposes.add(
          new ConsentState.PurposeState(
              one.text("purpose"), one.optionalText("choice"), one.optionalText("at"), one.decision()));
    }
    return new ConsentState(fields.text("principalId"), List.copyOf(purposes), fields.optionalText("subject"));
  }

  Pending<History> history(String principalId, History.Page page, CallOptions options) {
    return json(
        "history",
        options,
        () -> {
          Rules.principal("history", principalId);
          History.Page asked = page == null ? History.Page.FIRST : page;
          JsonObject body = object("principalId", principalId, "cursor", asked.cursor(), "limit", asked.limit());
          return Call.of("history", "history", null).sending(body.toString(), principalId).noting(principalId, page);
        },
        History.class);
  }

  Pending<Session> session(String principalId, CallOptions options) {
    String name = "sessions.create";
    return json(
        name,
        options,
        () -> {
          Rules.principal(name, principalId);
          JsonObject body = object("principalId", principalId);
          return Call.of(name, name, null).sending(body.toString(), principalId).noting(principalId);
        },
        Session.class);
  }

  Pending<Join> join(String session, String principalId, String secret, CallOptions options) {
    return json(
        "join",
        options,
        () -> {
          Rules.text("join", "session", session);
          Rules.principal("join", principalId);
          Rules.text("join", "principalSecret", secret);
          String body = object("principalId", principalId, "principalSecret", secret).toString();
          Call call = Call.of("join", "join", null).sending(body, session, principalId, secret);
          return call.by(session).noting(session, principalId, secret);
        },
        Join.class);
  }

  Pending<Link> link(String session, String token, CallOptions options) {
    return json(
        "link",
        options,
        () -> {
          Rules.text("link", "session", session);
          Rules.text("link", "token", token);
          String body = object("token", token).toString();
          return Call.of("link", "link", null).sending(body, session, token).by(session).noting(session, token);
        },
        Link.class);
  }

  Pending<ErasureReceipt> erase(String session, CallOptions options) {
    return json(
        "erase",
        options,
        () -> {
          Rules.text("erase", "session", session);
          return Call.of("erase", "erase", null).sending("{}", session).by(session).noting(session);
        },
        ErasureReceipt.class);
  }

  Pending<AgentAnswer> agent(AgentRequest request, CallOptions options) {
    return pending(
        "agent",
        options,
        () -> Call.of("agent", "agent", null).sending(request.json()).noting(request),
        answer -> read("agent", "agent", answer, body -> AgentAnswer.read(new Fields(body))),
        error -> {
          if (error.isUndecided() && settings.onUnavailable == OnUnavailable.DENY) return AgentAnswer.unasked(error);
          throw error;
        });
  }

  Pending<List<Purpose>> purposes(CallOptions options) {
    return json("purposes", options, () -> Call.of("purposes", "purposes", null).noting(), Purposes.class).map(Purposes::purposes);
  }

  Pending<SavedPurposes> savePurposes(List<PurposeDefinition> purposes, Boolean material, CallOptions options) {
    return json(
        "savePurposes",
        options,
        () -> {
          JsonArray items = new JsonArray();
          for (PurposeDefinition one : purposes) {
            items.add(
                object(
                    "id", one.id(), "title", one.title(), "description", one.description(), "lawfulBasis", one.lawfulBasis(),
                    "gpc", one.gpc(), "ttlDays", one.ttlDays(), "banner", one.banner(), "material", one.material()));
          }
          JsonObject body = object("material", material);
          body.add("purposes", items);
          Call call = Call.of("savePurposes", "savePurposes", null).sending(body.toString());
          return call.noting(purposes, material);
        },
        SavedPurposes.class);
  }

  Pending<List<Policy>> policies(CallOptions options) {
    return json("policies", options, () -> Call.of("policies", "policies", null).noting(), Policies.class).map(Policies::policies);
  }

  Pending<PublishedPolicy> publishPolicy(String text, boolean material, CallOptions options) {
    String body = object("text", text, "material", material).toString();
    Supplier<Call> createCall =
        () -> Call.of("publishPolicy", "publishPolicy", null).sending(body).noting(text, material);
    return json("publishPolicy", options, createCall, PublishedPolicy.class);
  }

  /** Checkpoint, key and export of the log. */
  Pending<String> ofLog(String name, CallOptions options) {
    return text(name, options, () -> Call.of(name, name, null).noting());
  }

  private static Call withSeq(String name, long seq) {
    Rules.seq(name, seq);
    return Call.of(name, name, seq).noting(seq);
  }

  Pending<Receipt> receipt(long seq, CallOptions options) {
    return json("receipt", options, () -> withSeq("receipt", seq), Receipt.class);
  }

  Pending<String> proof(long seq, CallOptions options) {
    return text("proof", options, () -> withSeq("proof", seq));
  }

  Pending<Verdict> decision(String requestId, CallOptions options) {
    Supplier<Call> createCall =
        () -> {
          Rules.requestId("decision", requestId);
          return Call.of("decision", "decision", requestId).noting(requestId);
        };
    return json("decision", "decision", options, createCall, body -> Verdict.read(new Fields(body), requestId));
  }

  Pending<ReportedOutcome> reportOutcome(String requestId, String outcome, String at, CallOptions options) {
    String name = "reportOutcome";
    return json(
        name,
        name,
        options,
        () -> {
          Rules.report(name, requestId, outcome);
          String body = object("outcome", outcome, "at", at).toString();
          return Call.of(name, name, requestId).sending(body).noting(requestId, outcome, at);
        },
        body -> {
          ReportedOutcome stored = Records.build(ReportedOutcome.class, body);
          boolean isAsked = stored.requestId().equals(requestId) && stored.outcome().equals(outcome);
          if (!isAsked) throw new Fields.Malformed();
          return stored;
        });
  }

  Pending<Health> ping(CallOptions options) {
    Supplier<Call> createCall = () -> Call.of("ping", "ping", null).noting();
    return json(
        "ping",
        "ping",
        options,
        createCall,
        body -> {
          if (!"ok".equals(body.get("status"))) throw new Fields.Malformed();
          return Records.build(Health.class, body);
        });
  }
}
