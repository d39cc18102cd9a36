package dev.gpd.consent;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;

/** Answers a server that renders (SPEC.md section 10), by the calls of the client or the fake. */
final class Visitors {
  /** An answer of {@code POST /v1/consent/state/refresh}. */
  record Refreshed(SignedState signed, List<String> purposes, long seq) {
    static Refreshed read(Fields fields) {
      SignedState signed = SignedState.parse(fields.text("state"));
      if (signed == null) throw new Fields.Malformed();
      return new Refreshed(signed, fields.texts("purposes"), fields.seq());
    }
  }

  /** Calls for the method that their errors name. */
  interface Remotes {
    Question.Remote<StateKeys.KeySet> fetchKeys(String method);

    Question.Remote<Refreshed> refresh(String method, SignedState state, boolean gpc);

    Question.Remote<List<Decision>> check(String method, List<Check> checks);
  }

  private final Remotes remotes;
  private final OnUnavailable onUnavailable;
  private final Supplier<String> cookieDomain;
  private final Supplier<Instant> now;
  private final StateKeys keys = new StateKeys();

  Visitors(Remotes remotes, OnUnavailable onUnavailable, Supplier<String> cookieDomain, Supplier<Instant> now) {
    this.remotes = remotes;
    this.onUnavailable = onUnavailable;
    this.cookieDomain = cookieDomain;
    this.now = now;
  }

  Question<Optional<VisitorState>> readState(String header) {
    return genuine(
        "readState",
        header,
        state -> {
          boolean isCurrent = state != null && state.isFresh(now.get());
          return done(isCurrent ? Optional.of(visible(state)) : Optional.empty());
        },
        error -> {
          if (!error.isUndecided()) throw error;
          return done(Optional.empty());
        });
  }

  Question<CurrentState> currentState(String header) {
    return current("currentState", header, Visitors::done);
  }

  /** @param principalId null if nobody is signed in */
  Question<Permissions> may(Function<String, String> header, List<String> purposes, String principalId) {
    String method = "may";
    String cookie = header.apply("Cookie");
    boolean gpc = hasSignal(header.apply("Sec-GPC"));
    // A check of an account cannot carry the signal of this request, so under GPC the cookie has to allow it too.
    if (principalId != null && !gpc) return allowedFor(method, principalId, purposes, null);
    Function<CurrentState, Question<Permissions>> answer =
        state -> {
          Set<String> granted = Set.copyOf(state.purposes());
          List<String> allowed = purposes.stream().filter(granted::contains).toList();
          if (principalId != null) return allowedFor(method, principalId, allowed, state.setCookie());
          return done(new Permissions(allowed, state.setCookie()));
        };
    return gpc ? underGpc(method, cookie, answer) : current(method, cookie, answer);
  }

  private static boolean hasSignal(String header) {
    if (header == null) return false;
    for (String signal : header.split(",")) if (signal.strip().equals("1")) return true;
    return false;
  }

  private static <T> Question<T> done(T value) {
    return new Question.Done<>(value);
  }

  private static VisitorState visible(SignedState state) {
    return new VisitorState(state.purposes(), state.seq(), state.at());
  }

  /**
   * Finds a state that gpd signed for this tenant, of any age.
   *
   * @param next takes it, or null
   * @param otherwise takes the error if that could not be found out
   */
  private <T> Question<T> genuine(
      String method,
      String header,
      Function<SignedState, Question<T>> next,
      Function<ConsentException, Question<T>> otherwise) {
    SignedState state = SignedState.parse(SignedState.ofCookie(header));
    Instant time = now.get();
    if (state == null || state.isEarly(time)) return next.apply(null);
    if (!keys.begin(state.keyId(), time)) return verified(state, next, otherwise);
    return new Question.Ask<>(
        remotes.fetchKeys(method),
        (found, error) -> {
          if (error != null && !error.isUndecided()) throw error;
          keys.end(found, error, time);
          return verified(state, next, otherwise);
        });
  }

  private <T> Question<T> verified(
      SignedState state, Function<SignedState, Question<T>> next, Function<ConsentException, Question<T>> otherwise) {
    boolean isGenuine;
    try {
      isGenuine = keys.verify(state);
    } catch (ConsentException unknown) {
      return otherwise.apply(unknown);
    }
    return next.apply(isGenuine ? state : null);
  }

  private <T> Question<T> current(String method, String header, Function<CurrentState, Question<T>> next) {
    return genuine(
        method,
        header,
        state -> {
          if (state == null) return next.apply(CurrentState.NOBODY);
          if (!state.isFresh(now.get())) return refresh(method, state, false, next);
          return next.apply(new CurrentState(state.purposes(), state.seq(), state.at(), null));
        },
        error -> next.apply(undecided(error)));
  }

  /** Finds the purposes that gpd allows under this signal. The cookie stays as it is: the signal is that of one request. */
  private <T> Question<T> underGpc(String method, String header, Function<CurrentState, Question<T>> next) {
    return genuine(
        method,
        header,
        state -> {
          if (state == null) return next.apply(CurrentState.NOBODY);
          return refresh(method, state, true, one -> next.apply(one.seq() == null ? one : one.withCookie(null)));
        },
        error -> next.apply(undecided(error)));
  }

  private <T> Question<T> refresh(
      String method, SignedState state, boolean gpc, Function<CurrentState, Question<T>> next) {
    return new Question.Ask<>(
        remotes.refresh(method, state, gpc),
        (found, error) -> {
          if (error == null) {
            String cookie = SignedState.setCookie(found.signed().text(), cookieDomain.get());
            return next.apply(new CurrentState(found.purposes(), found.seq(), found.signed().at(), cookie));
          }
          if (error.kind() != ErrorKind.NOT_FOUND) return next.apply(undecided(error));
          return next.apply(CurrentState.NOBODY.withCookie(SignedState.setCookie(null, cookieDomain.get())));
        });
  }

  /** The only place where an error becomes a denial. */
  private CurrentState undecided(ConsentException error) {
    if (error.isUndecided() && onUnavailable == OnUnavailable.DENY) return CurrentState.NOBODY;
    throw error;
  }

  private Question<Permissions> allowedFor(String method, String principalId, List<String> purposes, String setCookie) {
    if (purposes.isEmpty()) return done(new Permissions(List.of(), setCookie));
    List<Check> checks = purposes.stream().map(purpose -> Check.of(principalId, purpose)).toList();
    return new Question.Ask<>(
        remotes.check(method, checks),
        (decisions, error) -> {
          if (error != null) throw error;
          List<String> allowed = new ArrayList<>();
          for (int i = 0; i < purposes.size(); i++) if (decisions.get(i).allowed()) allowed.add(purposes.get(i));
          return done(new Permissions(List.copyOf(allowed), setCookie));
        });
  }
}
