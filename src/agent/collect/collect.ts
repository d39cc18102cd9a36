import type { Signals } from '../../schema/signals.ts';
import type { CollectedSignals } from '../types.ts';
import { readActivation } from './activation.ts';
import { collectMedia, collectPage, collectScreen, collectTime } from './browser.ts';
import { collectEngine, readEngine } from './engine.ts';
import { collectFonts } from './fonts.ts';
import { inFrame } from './frame.ts';
import { collectAudio, collectCanvas, collectWebgl, paintAll } from './graphics.ts';
import { collectInput } from './input.ts';
import { findPatched } from './patched.ts';
import { type Group, pause, within } from './read.ts';
import { collectPermissions, consoleReadsStacks, findAutomationGlobals, readProcessType } from './tells.ts';

/** Version of the signals' names and of the lists behind them (signals.md section 1). */
const COLLECTOR = '1';

export type CollectedGroups = { readonly [K in keyof Signals]: Group<K> | null } & {
  readonly collector: string;
};

type WorkerFacts = Group<'worker'>;

/**
 * Includes the time to fetch the file. After it the facts are null, which no rule counts against a visitor.
 */
const WORKER_MS = 2000;

function awaitFacts(worker: Worker): Promise<WorkerFacts> {
  return new Promise((resolve, reject) => {
    worker.onmessage = (event: MessageEvent<WorkerFacts>) => resolve(event.data);
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error('worker'));
    };
  });
}

/** @param url a file of the page's own origin, or null for no worker */
async function collectWorker(url: string | null): Promise<WorkerFacts | null> {
  if (url === null) return null;
  let worker: Worker | undefined;
  const facts = await within(WORKER_MS, () => {
    worker = new Worker(url);
    return awaitFacts(worker);
  });
  worker?.terminate();
  return facts;
}

/** Replaces the input and the activation in signals that were collected earlier. */
export const renewSignals = <S extends CollectedSignals>(signals: S): S => ({
  ...signals,
  tells: { ...(signals['tells'] as object), activated: readActivation(true) },
  input: collectInput(),
});

/**
 * Gives the main thread back. A hidden page is left out: its timers run once a second, and nobody waits for
 * its main thread.
 */
const yieldToPage = (): Promise<void> => (document.hidden ? Promise.resolve() : pause());

/**
 * Collects every group. The parts that run off the main thread start first; between the others the page gets
 * its main thread back. Callers must have passed the consent gate.
 */
export async function collectSignals(workerUrl: string | null): Promise<CollectedGroups> {
  const offThread = [collectWorker(workerUrl), collectPage(), collectAudio(), collectPermissions()] as const;
  const { frame, result: readings } = inFrame((realm) => ({
    patched: findPatched(realm),
    cdp: realm && consoleReadsStacks(realm),
    engine: readEngine(realm ?? globalThis),
    drawn: paintAll(realm),
    fonts: collectFonts(realm),
  }));
  await yieldToPage();
  const canvas = await collectCanvas(readings.drawn);
  await yieldToPage();
  const webgl = collectWebgl();
  await yieldToPage();
  const [engine, time] = await Promise.all([collectEngine(readings.engine), collectTime()]);
  const [worker, page, audio, permissions] = await Promise.all(offThread);
  return {
    collector: COLLECTOR,
    page,
    worker,
    frame,
    screen: collectScreen(),
    media: collectMedia(),
    graphics: { ...webgl, ...canvas, ...audio },
    fonts: readings.fonts,
    engine,
    time,
    tells: {
      globals: findAutomationGlobals(),
      cdp: readings.cdp,
      // Developer tools attach to a page's workers too; chromedriver and plain protocol clients do not.
      debugsPageAlone: worker?.cdp == null ? null : readings.cdp === true && !worker.cdp,
      patched: readings.patched,
      processType: readProcessType(),
      activated: readActivation(),
      ...permissions,
    },
    input: collectInput(),
  };
}
