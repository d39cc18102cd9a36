import type { Router } from 'express';
import type { Logger } from 'pino';
import type { Database } from '../db/engine.ts';
import type { Clock } from '../lib/clock.ts';
import type { GivenSockets } from './systemd/sockets.ts';

/** What the composition root takes and gives back. */

export interface RunningApp {
  readonly url: string;
  readonly port: number;
  /** Empty: ready. What `GET /readyz` says. */
  readonly notReady: () => readonly string[];
  /** Whether the database answers: for the watchdog. */
  readonly answers: () => Promise<boolean>;
  /** For SIGHUP: reads the files and the database again now. Never fails; what fails is logged. */
  reload(): Promise<void>;
  /** Drains within `deadlineMs`, writes what was accepted, closes the database. */
  stop(deadlineMs?: number): Promise<void>;
}

export interface AppOptions {
  readonly log: Logger;
  readonly clock?: Clock;
  /** Milliseconds from one round of a background loop to the next; each has its own default. */
  readonly intervals?: Readonly<Partial<Record<'poll' | 'agents' | 'webhooks' | 'housekeeping', number>>>;
  /** A COMMIT failed with an unknown outcome: the process must not go on. */
  readonly onFatal: (error: Error) => void;
  /** Sockets that listen already. */
  readonly sockets?: GivenSockets;
  /** The built thread that opens bundles; without it they are opened on the event loop. */
  readonly decryptThread?: URL | null;
  /** Further routes: the demo's pages, and those of a setup. */
  readonly routers?: (context: {
    readonly url: () => string;
    readonly database: Database;
  }) => Promise<readonly Router[]>;
}
