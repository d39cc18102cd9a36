import type { Signals } from '../../schema/signals.ts';
import type { CollectedSignals } from '../types.ts';
import { readActivation } from './activation.ts';
import { collectMedia, collectPage, collectScreen, collectTime } from './browser.ts';
import { collectEngine, readEngine } from './engine.ts';
import { collectFonts } from './fonts.ts';
import { inFrame } from './frame.ts';
import { collectAudio, collectCanvas, collectWebgl, paintAll } from './graphics.ts';
import { collectInput } from './input.ts';
import { patchedNatives } from './patched.ts';
import { type Group, pause, within } from './read.ts';
import { automationGlobals, collectPermissions, consoleReadsStacks, processType } from './tells.ts';

/** Version of the names and of the lists behind them (signals.md section 1). */
const COLLECTOR = '1';

export type CollectedGroups = { readonly [K in keyof Signals]: Group<K> | null } & {
  readonly collector: string;
};

type WorkerFacts = Group<'worker'>;

/** Covers fetching the file as well; without it the facts are null, which no rule counts against anyone. */
const WORKER_MS = 2000;

function ask(worker: Worker): Promise<WorkerFacts> {
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
    return ask(worker);
  });
  worker?.terminate();
  return facts;
}

/** Renews signals with the input since they were collected. */
export const renewSignals = <S extends CollectedSignals>(before: S): S => ({
  ...before,
  tells: { ...(before['tells'] as object), activated: readActivation(true) },
  input: collectInput(),
});

/** A hidden page's timers run once a second or less, and nobody waits for its main thread. */
const breathe = (): Promise<void> => (document.hidden ? Promise.resolve() : pause());

/**
 * Every group, with what runs elsewhere started first and the main thread given back between the rest.
 * Stands behind the gate: callers hold a receipt that passed it.
 */
export async function collectSignals(workerUrl: string | null): Promise<CollectedGroups> {
  const elsewhere = [collectWorker(workerUrl), collectPage(), collectAudio(), collectPermissions()] as const;
  const { frame, used: frameUsed } = inFrame((realm) => ({
    patched: patchedNatives(realm),
    cdp: realm && consoleReadsStacks(realm),
    engine: readEngine(realm ?? globalThis),
    drawn: paintAll(realm),
    fonts: collectFonts(realm),
  }));
  await breathe();
  const canvas = await collectCanvas(frameUsed.drawn);
  await breathe();
  const webgl = collectWebgl();
  await breathe();
  const [engine, time] = await Promise.all([collectEngine(frameUsed.engine), collectTime()]);
  const [worker, page, audio, permissions] = await Promise.all(elsewhere);
  return {
    collector: COLLECTOR,
    page,
    worker,
    frame,
    screen: collectScreen(),
    media: collectMedia(),
    graphics: { ...webgl, ...canvas, ...audio },
    fonts: frameUsed.fonts,
    engine,
    time,
    tells: {
      globals: automationGlobals(),
      cdp: frameUsed.cdp,
      // Developer tools attach to a page's workers too; chromedriver and plain protocol clients do not.
      debugsPageAlone: worker?.cdp == null ? null : frameUsed.cdp === true && !worker.cdp,
      patched: frameUsed.patched,
      processType: processType(),
      activated: readActivation(),
      ...permissions,
    },
    input: collectInput(),
  };
}
