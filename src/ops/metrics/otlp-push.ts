import { randomUUID } from 'node:crypto';
import type { Registry } from 'prom-client';
import { postWebhook } from '../../egress/post-webhook.ts';
import { type Clock, MINUTE } from '../../lib/clock.ts';
import { every } from '../../lib/every.ts';
import { otlpRequest } from './otlp.ts';

/** GPD_OTLP_ENDPOINT: sends what /metrics shows to a collector once a minute, and once more at the end. */

const EVERY_MS = MINUTE;
/** A drain has 15 s in all (contract section 10): what is under way and the last values may take this much of it each. */
const LIMIT_MS = 2000;

export interface OtlpDeps {
  readonly registry: Registry;
  readonly version: string;
  readonly clock: Clock;
  readonly everyMs?: number;
  readonly onFault: (error: unknown) => void;
}

/** `endpoint` as OTEL_EXPORTER_OTLP_ENDPOINT has it: the path of the signal comes behind. */
export function startOtlpPush(endpoint: string, deps: OtlpDeps) {
  const { registry, version, clock, everyMs = EVERY_MS } = deps;
  const context = { version, instance: randomUUID(), startedAt: clock() };
  // The operator names the collector, which mostly lies inside; no redirect is followed, and its answer is not read.
  const target = { url: `${endpoint}/v1/metrics`, allowPrivate: true };
  const send = async (): Promise<void> => {
    const metrics = await registry.getMetricsAsJSON();
    const body = JSON.stringify(otlpRequest(metrics, { ...context, now: clock() }));
    const status = await postWebhook(target, body, {}, LIMIT_MS);
    if (status < 200 || status > 299) throw new Error(`the collector answered ${status}`);
  };
  // A slow collector gets the next values later.
  const sends = every(send, { ms: everyMs, timer: setInterval, onFault: deps.onFault });
  return {
    async stop() {
      await sends.stop();
      await sends.soon().catch(() => {});
    },
  };
}
