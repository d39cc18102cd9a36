/** A heartbeat only while both work: the timer needs the event loop, the probe the database. */

export interface WatchdogDeps {
  /** After so long without a sign the service manager ends this process. */
  readonly watchdogMs: number;
  /** May never settle: then there is no further sign. */
  readonly answers: () => Promise<boolean>;
  readonly onAlive: () => void;
  /** The first of several misses. */
  readonly onMiss: () => void;
}

/** Two may be late before the third decides. */
const SIGNS_A_PERIOD = 3;

export function startWatchdog(deps: WatchdogDeps): { stop(): void } {
  let pending = false;
  let missed = false;
  let stopped = false;

  const miss = (): void => {
    if (!missed && !stopped) deps.onMiss();
    missed = true;
  };
  const look = async (): Promise<void> => {
    pending = true;
    const alive = await deps.answers().catch(() => false);
    pending = false;
    if (stopped) return;
    if (!alive) return miss();
    missed = false;
    deps.onAlive();
  };
  const tick = (): void => {
    if (pending) miss();
    else void look();
  };
  const timer = setInterval(tick, deps.watchdogMs / SIGNS_A_PERIOD);
  return {
    stop() {
      stopped = true;
      clearInterval(timer);
    },
  };
}
