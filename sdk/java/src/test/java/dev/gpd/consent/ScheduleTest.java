package dev.gpd.consent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ScheduleTest {
  private static final Instant NOW = Instant.parse("2026-11-20T10:00:00Z");
  private static final long SECOND = 1_000_000_000L;

  @Test
  void jitterIsBelowABoundThatDoublesUpToASecond() {
    Map.of(1, 100, 2, 200, 4, 800, 5, 1000, 10, 1000)
        .forEach(
            (retry, bound) -> {
              assertEquals(0, Schedule.jitterMillis(retry, 0));
              assertEquals(bound / 2.0, Schedule.jitterMillis(retry, 0.5));
              assertTrue(Schedule.jitterMillis(retry, 0.999) < bound);
            });
  }

  @Test
  void waitIsRetryAfterAndJitterInsideTheBudget() {
    assertEquals(Optional.of(1_050_000_000L), Schedule.waitNanos(1, 1, 2 * SECOND, 0.5));
    assertEquals(Optional.of(50_000_000L), Schedule.waitNanos(1, null, 2 * SECOND, 0.5));
    assertEquals(Optional.empty(), Schedule.waitNanos(1, 2, 2 * SECOND, 0));
    assertEquals(Optional.of(2 * SECOND), Schedule.waitNanos(1, 2, 2 * SECOND + 1, 0));
    assertEquals(Optional.empty(), Schedule.waitNanos(2, null, SECOND / 10, 0.5));
  }

  @Test
  void retryAfterIsSecondsOrADate() {
    assertEquals(0, Schedule.retryAfter("0", NOW));
    assertEquals(30, Schedule.retryAfter(" 30 ", NOW));
    assertEquals(30, Schedule.retryAfter("Fri, 20 Nov 2026 10:00:30 GMT", NOW));
    assertEquals(0, Schedule.retryAfter("Fri, 20 Nov 2026 09:00:00 GMT", NOW));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "-1", "1.5", "soon", "99999999999", "Fri, never"})
  void otherWordsAreNone(String value) {
    assertNull(Schedule.retryAfter(value, NOW));
  }
}
