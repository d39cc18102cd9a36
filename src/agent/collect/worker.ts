import { type Group, within } from './read.ts';

/** Reads the same properties in a worker, where patches of the page do not reach. */

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
export async function collectWorker(url: string | null): Promise<WorkerFacts | null> {
  if (url === null) return null;
  let worker: Worker | undefined;
  const facts = await within(WORKER_MS, () => {
    worker = new Worker(url);
    return ask(worker);
  });
  worker?.terminate();
  return facts;
}
