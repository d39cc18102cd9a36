import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Visit } from '../lib/types.ts';

/** Small add-ons that behave like the well-known ones, so that the matrix needs no store. */

interface AddOn {
  readonly script: string;
  /** Replaces the User-Agent header as well. */
  readonly userAgent?: string;
  /** Replaces the Sec-CH-UA-Platform header. */
  readonly platform?: string;
}

const MAC_FIREFOX = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:153.0) Gecko/20100101 Firefox/153.0';

export const ADD_ONS = {
  /** Canvas and audio read-outs get noise, as privacy add-ons do. */
  noise: {
    script: `
      const original = CanvasRenderingContext2D.prototype.getImageData;
      CanvasRenderingContext2D.prototype.getImageData = function getImageData(...args) {
        const image = original.apply(this, args);
        for (let at = 0; at < image.data.length; at += 97) image.data[at] ^= Math.random() < 0.5 ? 1 : 0;
        return image;
      };
      const channel = AudioBuffer.prototype.getChannelData;
      AudioBuffer.prototype.getChannelData = function getChannelData(...args) {
        const samples = channel.apply(this, args);
        for (let at = 0; at < samples.length; at += 101) samples[at] += Math.random() * 1e-7;
        return samples;
      };`,
  },
  /** Another browser and another system in the request alone, as editors of headers set them. */
  headers: {
    script: '',
    userAgent: MAC_FIREFOX,
    platform: '"macOS"',
  },
  /** Another browser's name in page and request. */
  switcher: {
    userAgent: MAC_FIREFOX,
    script: `
      for (const [name, value] of Object.entries({ userAgent: ${JSON.stringify(MAC_FIREFOX)}, platform: 'MacIntel', vendor: '' }))
        Object.defineProperty(Navigator.prototype, name, { get: () => value, configurable: true });`,
  },
} as const satisfies Readonly<Record<string, AddOn>>;

/** Writes the add-on into the visit's directory. @returns the flags that load it */
export function addOnFlags(visit: Visit, { script, userAgent, platform }: AddOn): string[] {
  const directory = join(visit.directory, 'add-on');
  mkdirSync(directory);
  const setHeader = (header: string, value: string) => ({ header, operation: 'set', value });
  const rules = [
    {
      id: 1,
      action: {
        type: 'modifyHeaders',
        requestHeaders: [
          setHeader('user-agent', userAgent ?? ''),
          ...(platform === undefined ? [] : [setHeader('sec-ch-ua-platform', platform)]),
        ],
      },
      condition: { resourceTypes: ['main_frame', 'xmlhttprequest', 'script'] },
    },
  ];
  const manifest = {
    manifest_version: 3,
    name: 'Add-on',
    version: '1.0',
    content_scripts: [
      {
        matches: ['<all_urls>'],
        js: ['content.js'],
        run_at: 'document_start',
        world: 'MAIN',
        all_frames: true,
      },
    ],
    ...(userAgent === undefined
      ? {}
      : {
          permissions: ['declarativeNetRequest'],
          host_permissions: ['<all_urls>'],
          declarative_net_request: { rule_resources: [{ id: 'r', enabled: true, path: 'rules.json' }] },
        }),
  };
  writeFileSync(join(directory, 'manifest.json'), JSON.stringify(manifest));
  writeFileSync(join(directory, 'content.js'), script);
  writeFileSync(join(directory, 'rules.json'), JSON.stringify(rules));
  return [`--load-extension=${directory}`, '--disable-features=DisableLoadExtensionCommandLineSwitch'];
}
