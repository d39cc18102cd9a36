import { readFileSync } from 'node:fs';
import type { SealedBundle } from '../../../src/schema/bundle.ts';
import { readSignals } from '../../../src/schema/signals.ts';
import { judge } from './judge.ts';
import { missingPrograms, programVersion } from './programs.ts';
import type { Rig } from './rig.ts';
import type { Report, Site } from './site.ts';
import { openVisit, type Stage } from './stage.ts';
import type { BotdVerdict, Captured, Measured, MeasuredRun, Outcome, Run, RunNames } from './types.ts';

/** One run: a fresh profile, the real agent and server, and what all sides say of it. */

const REPORT_MS = 45_000;

const namesOf = ({ browser, driver, setup, truth }: RunNames): RunNames => ({
  browser,
  driver,
  setup,
  truth,
});

function botdOf(report: Report): BotdVerdict | null {
  const { bot, botKind } = (report.botd ?? {}) as { bot?: unknown; botKind?: unknown };
  return typeof bot === 'boolean' ? { bot, kind: typeof botKind === 'string' ? botKind : null } : null;
}

function capture(rig: Rig, site: Site): Captured {
  const exchange = site.lastExchange();
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

type Sides = Pick<MeasuredRun, 'measured' | 'captured'>;

async function readSides({ site, rig }: Stage, report: Report): Promise<Sides> {
  const answer = report.gpd as Answered;
  const botd = botdOf(report);
  // Under Global Privacy Control nobody is identified: that is an answer too.
  if (answer.reason === 'gpc') return { measured: { ...REFUSED, botd }, captured: null };
  if (!answer.sent || !answer.response) throw new Error(`the agent says ${JSON.stringify(answer)}`);
  const captured = capture(rig, site);
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
    const sides = await readSides(stage, await report);
    return { names, version: versionOf(run, sides.captured, visit.environment), ...sides };
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
  if (kept.captured === null) return kept;
  const { rules, score, defenses, automation, ...rest } = judge(kept.captured);
  const calm = defenses.length > 0 && !automation ? Math.min(score, 0.2) : score;
  const again = { class: rest.class, rules: rules.map(({ id }) => id), score: calm, defenses };
  return { ...kept, measured: { ...kept.measured, ...again } };
}
