import { workerFacts } from './collect/worker-facts.ts';

postMessage(workerFacts());
