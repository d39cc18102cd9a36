import { readFileSync } from 'node:fs';
import type { SealedBundle } from '../../../src/schema/bundle.ts';
import { readSignals } from '../../../src/schema/signals.ts';
import { judge } from './judge.ts';
import { missingPrograms, programVersion } from './programs.ts';
import type { Rig } from './rig.ts';
import type { Exchange, Report } from './site.ts';
import { openVisit, type Stage } from './stage.ts';
import type { BotdVerdict, Captured, Measured, MeasuredRun, Outcome, Run, RunNames, Sides } from './types.ts';

/** One run: a fresh profile, the real agent and server, and what all sides say of it. */

const REPORT_MS = 45_000;

const namesOf = ({ browser, driver, setup, truth, sample }: RunNames): RunNames => ({
  browser,
  driver,
  setup,
  truth,
  ...(sample && { sample }),
});

function botdOf(report: Report): BotdVerdict | null {
  const { bot, botKind } = (report.botd ?? {}) as { bot?: unknown; botKind?: unknown };
  return typeof bot === 'boolean' ? { bot, kind: typeof botKind === 'string' ? botKind : null } : null;
}

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

async function readSides(
  { rig }: Stage,
  answer: Answered,
  exchange: Exchange | null,
  botd: BotdVerdict | null,
): Promise<Sides> {
  // Under Global Privacy Control nobody is identified: that is an answer too.
  if (answer.reason === 'gpc') return { measured: { ...REFUSED, botd }, captured: null };
  if (!answer.sent || !answer.response) throw new Error(`the agent says ${JSON.stringify(answer)}`);
  const captured = capture(rig, exchange);
  const decision = await rig.decision(answer.response.requestId);
  const measured: Measured = {
    class: decision.class,
    rules: decision.rules.map(({ id }) => id),
    defenses: judge(captured).defenses,
    score: decision.suspectScore,
    needsAttestation: decision.needsAttestation,
    botd,
  };
  return { measured, captured };
}

const seenVersions = new Map<string, string>();

/** Programs on WebKitGTK and QtWebEngine have versions of their own; the engine's counts. */
function versionOf(run: Run, captured: Captured | null, environment: NodeJS.ProcessEnv): string {
  const agent = captured?.signals.page?.userAgent ?? '';
  const qt = /QtWebEngine\/([\d.]+)/.exec(agent)?.[1];
  const name = run.browser === 'WebKitGTK' ? 'minibrowser' : run.programs[0];
  const own = run.browser === 'QtWebEngine' || name === undefined ? null : programVersion(name, environment);
  const version = qt ?? own ?? seenVersions.get(run.browser) ?? '?';
  seenVersions.set(run.browser, version);
  return version;
}

async function visitOnce(stage: Stage, run: Run, id: string): Promise<Outcome> {
  const names = namesOf(run);
  const { visit, end } = openVisit(stage, id);
  stage.site.forgetExchange();
  const report = stage.site.reportOf(id, REPORT_MS);
  report.catch(() => {});
  try {
    // A driver may still wait for the page's last byte when the report is there.
    await Promise.race([run.open(visit), report]);
    const reported = await report;
    const { gpd, later } = reported as { gpd: Answered; later?: Answered | { failed: string } };
    if (later && 'failed' in later) throw new Error(later.failed);
    const { site } = stage;
    const botd = botdOf(reported);
    const sides = await readSides(stage, gpd, site.firstExchange(), botd);
    // An old QtWebEngine keeps no Secure cookie from http://localhost, so its session is unknown afterwards.
    const isAnswered = later?.sent === true;
    const pressed = isAnswered ? await readSides(stage, later, site.lastExchange(), botd) : null;
    return { names, version: versionOf(run, sides.captured, visit.environment), ...sides, pressed };
  } catch (error) {
    return { names, why: `it failed: ${error instanceof Error ? error.message : String(error)}` };
  } finally {
    await end();
  }
}

/** A browser that comes up badly gets a second chance, with another fresh profile. */
export async function measure(stage: Stage, run: Run, id: string): Promise<Outcome> {
  const why = missingPrograms(run.programs) ?? run.missing?.() ?? null;
  if (why !== null) return { names: namesOf(run), why };
  const first = await visitOnce(stage, run, id);
  return 'why' in first ? visitOnce(stage, run, `${id}-again`) : first;
}

/** A run that was kept in a file, judged again with the rules of this source tree. */
export function judgeAgain(file: string): MeasuredRun {
  const kept = JSON.parse(readFileSync(file, 'utf8')) as MeasuredRun;
  return { ...kept, ...rejudge(kept), pressed: kept.pressed && rejudge(kept.pressed) };
}

function rejudge(kept: Sides): Sides {
  if (kept.captured === null) return kept;
  const { rules, score, defenses, automation, ...rest } = judge(kept.captured);
  const calm = defenses.length > 0 && !automation ? Math.min(score, 0.2) : score;
  const again = { class: rest.class, rules: rules.map(({ id }) => id), score: calm, defenses };
  return { captured: kept.captured, measured: { ...kept.measured, ...again } };
}
