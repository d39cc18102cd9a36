import type { SealedBundle } from '../../../src/schema/bundle.ts';
import { readSignals } from '../../../src/schema/signals.ts';
import { judge } from './judge.ts';
import { missingPrograms, programVersion } from './programs.ts';
import type { Rig } from './rig.ts';
import type { Exchange } from './site.ts';
import { openVisit, type Stage } from './stage.ts';
import type { Captured, Measured, Outcome, Run, RunNames } from './types.ts';

/** Makes one run: a fresh profile, the real agent and server, and the verdict. */

const REPORT_MS = 45_000;

const namesOf = ({ browser, driver, setup, truth }: RunNames): RunNames => ({
  browser,
  driver,
  setup,
  truth,
});

function capture(rig: Rig, exchange: Exchange | null): Captured {
  if (!exchange) throw new Error('nothing was sent to gpd');
  const plaintext = rig.open(JSON.parse(exchange.body) as SealedBundle);
  if (!plaintext) throw new Error('the bundle does not open');
  const { signals } = JSON.parse(plaintext.toString('utf8')) as { signals: Record<string, unknown> };
  return { signals: readSignals(signals).signals, headers: exchange.headers };
}

interface Answered {
  readonly sent: boolean;
  readonly reason?: string;
  readonly response?: { readonly requestId: string };
}

const REFUSED = { class: 'refused', rules: [], defenses: [], score: null, needsAttestation: false } as const;

async function readVerdict({ rig }: Stage, answer: Answered, exchange: Exchange | null): Promise<Measured> {
  // A refusal under Global Privacy Control is a valid result.
  if (answer.reason === 'gpc') return REFUSED;
  if (!answer.sent || !answer.response) throw new Error(`the agent says ${JSON.stringify(answer)}`);
  const decision = await rig.decision(answer.response.requestId);
  return {
    class: decision.class,
    rules: decision.rules.map(({ id }) => id),
    // Judged again, because the stored decision does not list the defenses.
    defenses: judge(capture(rig, exchange)).defenses,
    score: decision.suspectScore,
    needsAttestation: decision.needsAttestation,
  };
}

async function visitOnce(stage: Stage, run: Run, id: string): Promise<Outcome> {
  const names = namesOf(run);
  const { visit, end } = openVisit(stage, id);
  const { site } = stage;
  site.forgetExchange();
  const report = site.reportOf(id, REPORT_MS);
  report.catch(() => {});
  try {
    // The report may arrive while the driver still waits for the page's last byte.
    await Promise.race([run.open(visit), report]);
    const { gpd, later } = (await report) as { gpd: Answered; later?: Answered | { failed: string } };
    if (later && 'failed' in later) throw new Error(later.failed);
    const [program] = run.programs;
    return {
      names,
      version: (program && programVersion(program, visit.environment)) ?? '?',
      measured: await readVerdict(stage, gpd, site.firstExchange()),
      pressed: later?.sent ? await readVerdict(stage, later, site.lastExchange()) : null,
    };
  } catch (error) {
    return { names, why: `it failed: ${error instanceof Error ? error.message : String(error)}` };
  } finally {
    await end();
  }
}

/** Repeats a failed run once with a new profile, because a browser sometimes starts badly. */
export async function measure(stage: Stage, run: Run, id: string): Promise<Outcome> {
  const missing = missingPrograms(run.programs);
  if (missing !== null) return { names: namesOf(run), why: missing };
  const first = await visitOnce(stage, run, id);
  return 'why' in first ? visitOnce(stage, run, `${id}-again`) : first;
}
