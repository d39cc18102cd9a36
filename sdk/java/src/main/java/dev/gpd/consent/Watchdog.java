package dev.gpd.consent;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Ends the calls whose time is up. It looks every 10 ms while calls come, because an alarm for each of them would wake a thread each time,
 * and rests after a second without any.
 */
final class Watchdog {
  private static final long PERIOD_MILLIS = 10;
  private static final int TICKS_OF_PATIENCE = 100;

  private final Set<Operation> running = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean isAwake = new AtomicBoolean();
  private int idleTicks;

  void add(Operation operation) {
    running.add(operation);
    wake();
  }

  void remove(Operation operation) {
    running.remove(operation);
  }

  Set<Operation> running() {
    return running;
  }

  private void wake() {
    if (!isAwake.get() && isAwake.compareAndSet(false, true)) tickLater();
  }

  private void tickLater() {
    Transport.TIMER.schedule(this::tick, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
  }

  private void tick() {
    idleTicks = running.isEmpty() ? idleTicks + 1 : 0;
    for (Operation operation : running) operation.expireWhenDue();
    if (idleTicks < TICKS_OF_PATIENCE) {
      tickLater();
      return;
    }
    idleTicks = 0;
    isAwake.set(false);
    // One that came in between saw it awake.
    if (!running.isEmpty()) wake();
  }
}
