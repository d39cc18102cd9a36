import { attempt } from '../browser/page.ts';
import { nav } from './collect/browser.ts';
import { unmaskedRenderer } from './collect/graphics.ts';
import { brands, flag, type Group, number, text, texts } from './collect/read.ts';
import { consoleReadsStacks } from './collect/tells.ts';

/** Runs inside the worker: the same questions, asked where a disguise of the page seldom reaches. */
function workerFacts(): Group<'worker'> {
  const uaData = attempt(() => nav().userAgentData);
  return {
    userAgent: text(() => nav().userAgent),
    platform: text(() => nav().platform),
    languages: texts(() => nav().languages),
    hardwareConcurrency: number(() => nav().hardwareConcurrency),
    webdriver: flag(() => nav().webdriver),
    renderer: text(() => {
      const gl = new OffscreenCanvas(1, 1).getContext('webgl');
      return gl && unmaskedRenderer(gl);
    }),
    uaData: uaData && { brands: brands(() => uaData.brands), platform: text(() => uaData.platform) },
    cdp: consoleReadsStacks(globalThis),
  };
}

postMessage(workerFacts());
