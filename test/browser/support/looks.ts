import { KID, type Rig, startRig } from '../../../bench/matrix/lib/rig.ts';
import { type Site, startSite } from '../../../bench/matrix/lib/site.ts';
import { type IngestResponse, ingestResponseSchema } from '../../../src/schema/responses.ts';
import { type ReadSignals, readSignals } from '../../../src/schema/signals.ts';

/** A page that consents and asks by itself, before a real gpd, and what comes of opening it. */

export interface Look {
  /** Null: the agent sent nothing, and `reason` says why. */
  readonly response: IngestResponse | null;
  readonly reason: string | null;
  readonly signals: ReadSignals['signals'] | null;
}

export interface Looks {
  /** @param open goes to the address, which asks once */
  look(open: (url: string) => Promise<unknown>): Promise<Look>;
  close(): Promise<void>;
}

const REPORT_MS = 45_000;

function signalsOf(site: Site, rig: Rig): Look['signals'] {
  const exchange = site.lastExchange();
  const opened = exchange && rig.open(JSON.parse(exchange.body));
  if (!opened) throw new Error('the bundle does not open');
  return readSignals((JSON.parse(opened.toString('utf8')) as { signals: Record<string, unknown> }).signals)
    .signals;
}

export async function startLooks(): Promise<Looks> {
  const site = await startSite();
  const rig = await startRig(site.origin);
  site.proxyTo(rig.port);
  let count = 0;
  return {
    async look(open) {
      count += 1;
      site.forgetExchange();
      const report = site.reportOf(`look-${count}`, REPORT_MS);
      report.catch(() => {});
      await open(`${site.origin}/?run=look-${count}&kid=${KID}`);
      const answer = (await report).gpd as { reason?: string; response?: unknown };
      if (answer.response === undefined)
        return { response: null, reason: answer.reason ?? null, signals: null };
      return {
        response: ingestResponseSchema.parse(answer.response),
        reason: null,
        signals: signalsOf(site, rig),
      };
    },
    async close() {
      await rig.stop();
      await site.close();
    },
  };
}
