import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Display, startDisplay } from './display.ts';
import { findProgram } from './programs.ts';
import { KID, type Rig, startRig } from './rig.ts';
import { type Site, startSite } from './site.ts';
import type { Visit } from './types.ts';

/** The parts that all runs share: the page's server, gpd behind it, and a screen. */
export interface Stage {
  readonly site: Site;
  readonly rig: Rig;
  /** Null without Xvfb: then only runs without a screen are made. */
  readonly display: Display | null;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const site = await startSite();
  const rig = await startRig(site.origin);
  site.proxyTo(rig.port);
  const display = findProgram('xvfb') === null ? null : await startDisplay();
  return {
    site,
    rig,
    display,
    async close() {
      await display?.stop();
      await rig.stop();
      await site.close();
    },
  };
}

/** Variables of the desktop session, which must not change how a browser behaves. */
const LEAKS = ['WAYLAND_DISPLAY', 'DISPLAY', 'DBUS_SESSION_BUS_ADDRESS', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME'];

export interface OpenedVisit {
  readonly visit: Visit;
  /** Ends what the visit started and removes its directory. */
  readonly end: () => Promise<void>;
}

export function openVisit(stage: Stage, id: string): OpenedVisit {
  const directory = mkdtempSync(join(tmpdir(), 'gpd-visit-'));
  mkdirSync(join(directory, 'home'));
  const undos: (() => unknown)[] = [];
  const safeVariables = Object.entries(process.env).filter(([name]) => !LEAKS.includes(name));
  const environment: NodeJS.ProcessEnv = {
    ...Object.fromEntries(safeVariables),
    HOME: join(directory, 'home'),
    XDG_RUNTIME_DIR: directory,
    ...(stage.display === null ? {} : { DISPLAY: stage.display.name }),
  };
  const query = `run=${id}&kid=${KID}`;
  const visit: Visit = {
    url: `${stage.site.origin}/?${query}`,
    lateUrl: `${stage.site.origin}/?${query}&late=1`,
    pressUrl: `${stage.site.origin}/?${query}&press=1`,
    latePressUrl: `${stage.site.origin}/?${query}&press=1&late=1`,
    ready: () => stage.site.readyOf(id),
    directory,
    environment,
    defer: (undo) => undos.push(undo),
  };
  const end = async (): Promise<void> => {
    for (const undo of undos.reverse()) await Promise.resolve(undo()).catch(() => {});
    rmSync(directory, { recursive: true, force: true, maxRetries: 15, retryDelay: 200 });
  };
  return { visit, end };
}
