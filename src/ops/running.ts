import type { Router } from 'express';
import type { Logger } from 'pino';
import type { Database } from '../db/engine.ts';
import type { Mail } from '../egress/smtp.ts';
import type { HttpRequest } from '../http/request.ts';
import type { Clock } from '../lib/clock.ts';
import type { GivenSockets } from './systemd/socket-files.ts';

/** Types of the running server: the options of `startApp` and the handle that it returns. */

export interface RunningApp {
  readonly url: string;
  readonly port: number;
  readonly hasTenants: () => boolean;
  /** Reasons of `GET /readyz`; empty: ready. */
  readonly notReady: () => readonly string[];
  /** True if the database answers; the watchdog asks. */
  readonly pingDatabase: () => Promise<boolean>;
  /** Reads files and database again, on SIGHUP. It never fails; it logs failures. */
  reload(): Promise<void>;
  /** Answers running requests within `deadlineMs`, commits accepted writes and closes the database. */
  stop(deadlineMs?: number): Promise<void>;
}

export interface AppOptions {
  readonly log: Logger;
  readonly clock?: Clock;
  /** Milliseconds between two rounds of a background loop; each loop has a default. */
  readonly intervals?: Readonly<Partial<Record<'poll' | 'agents' | 'webhooks' | 'housekeeping', number>>>;
  /** Called when a COMMIT failed with an unknown outcome, after which the process must end. */
  readonly onFatal: (error: Error) => void;
  /** Sockets of the systemd units, which are already listening. */
  readonly sockets?: GivenSockets;
  /** The built file of the thread that decrypts bundles; without it they are decrypted on the event loop. */
  readonly decryptThread?: URL | null;
  /** Instead of the relay: the demo keeps its mails. */
  readonly sendMail?: (mail: Mail) => Promise<void>;
  /** Each answer waits for it: the demo first writes its past. */
  readonly admit?: (request: HttpRequest) => Promise<void>;
  /** Additional routes: the demo's pages, or those of a setup. */
  readonly routers?: (context: {
    readonly url: () => string;
    readonly database: Database;
  }) => Promise<readonly Router[]>;
}
