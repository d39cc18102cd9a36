package dev.gpd.consent;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Ends calls whose time has run out. It checks every 10 ms while there are calls, because a timer for each call would wake a thread
 * each time, and stops after a second without calls.
 */
final class Watchdog {
  private static final long PERIOD_MILLIS = 10;
  private static final int TICKS_OF_PATIENCE = 100;

  private final ScheduledExecutorService timer;
  private final Set<Operation> running = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean isAwake = new AtomicBoolean();
  private int idleTicks;

  Watchdog(ScheduledExecutorService timer) {
    this.timer = timer;
  }

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
    try {
      timer.schedule(this::tick, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException closed) {
      // Ignored: closing ends running calls.
    }
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
    // A call that began meanwhile saw it running.
    if (!running.isEmpty()) wake();
  }
}
