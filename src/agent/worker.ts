import { attempt } from '../browser/page.ts';
import { nav } from './collect/browser.ts';
import { readRenderer } from './collect/graphics.ts';
import { brands, flag, type Group, number, text, texts } from './collect/read.ts';
import { consoleReadsStacks } from './collect/tells.ts';

/**
 * Runs inside the worker and reads the properties that the page also reads: a disguise of the page seldom
 * reaches a worker.
 */
function readFacts(): Group<'worker'> {
  const uaData = attempt(() => nav().userAgentData);
  return {
    userAgent: text(() => nav().userAgent),
    platform: text(() => nav().platform),
    languages: texts(() => nav().languages),
    hardwareConcurrency: number(() => nav().hardwareConcurrency),
    webdriver: flag(() => nav().webdriver),
    renderer: text(() => {
      const gl = new OffscreenCanvas(1, 1).getContext('webgl');
      return gl && readRenderer(gl);
    }),
    uaData: uaData && { brands: brands(() => uaData.brands), platform: text(() => uaData.platform) },
    cdp: consoleReadsStacks(globalThis),
  };
}

postMessage(readFacts());
