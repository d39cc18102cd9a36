import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startRdpDisplay } from './display.ts';
import { freePort } from './port.ts';
import { eventually, start } from './process.ts';
import { program } from './programs.ts';
import type { Visit } from './types.ts';

/** Desktops beside plain X: Wayland compositors, a desktop reached by RDP, one with a screen reader. All ends with the visit. */

const isRoot = process.getuid?.() === 0;
const NOBODY = 65534;

/** @param socket its whole path: Firefox as root takes no directory of another user */
function onWayland(visit: Visit, socket: string): Visit {
  const { DISPLAY: _, ...rest } = visit.environment;
  const session = { WAYLAND_DISPLAY: socket, XDG_SESSION_TYPE: 'wayland' };
  return { ...visit, environment: { ...rest, ...session } };
}

/** A compositor without a screen, looked at and moved by RFC 6143 on this port. It refuses to be root. */
export async function openSway(visit: Visit, port: number): Promise<Visit> {
  const directory = mkdtempSync(join(tmpdir(), 'gpd-sway-'));
  visit.defer(() => rmSync(directory, { recursive: true, force: true }));
  const config = join(directory, 'config');
  writeFileSync(config, 'output HEADLESS-1 resolution 1366x768\nxwayland disable\n');
  if (isRoot) for (const path of [directory, config]) chownSync(path, NOBODY, NOBODY);
  const environment = {
    HOME: directory,
    XDG_RUNTIME_DIR: directory,
    WLR_BACKENDS: 'headless',
    WLR_RENDERER: 'pixman',
    WLR_LIBINPUT_NO_DEVICES: '1',
  };
  const asNobody = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'];
  const [command, ...args] = [...(isRoot ? asNobody : []), program('sway'), '-c', config];
  start(visit, command, args, environment);
  const socket = join(directory, 'wayland-1');
  const inside = onWayland(visit, socket);
  await eventually(() => access(socket));
  start(inside, program('wayvnc'), ['127.0.0.1', String(port)]);
  return inside;
}

/** A compositor whose screen is a window of the display. */
export async function openWeston(visit: Visit): Promise<Visit> {
  const args = ['--backend=x11-backend.so', '--use-pixman', '--fullscreen', '--socket=weston'];
  start(visit, program('weston'), args);
  const socket = join(visit.directory, 'weston');
  await eventually(() => access(socket));
  return onWayland(visit, socket);
}

/** The client's whole screen is the other desktop. */
export async function openRdp(visit: Visit): Promise<Visit> {
  const { directory } = visit;
  const port = await freePort();
  const display = await startRdpDisplay(directory);
  visit.defer(() => display.stop());
  const socket = join(directory, `xrdp_display_${display.name.slice(1)}`);
  const config = join(directory, 'xrdp.ini');
  const pem = ['certificate=/etc/xrdp/cert.pem', 'key_file=/etc/xrdp/key.pem'];
  const log = ['[Logging]', `LogFile=${join(directory, 'xrdp.log')}`, 'EnableSyslog=false'];
  const session = ['[it]', 'name=it', 'lib=libxup.so', 'username=na', 'password=na', 'ip=127.0.0.1'];
  const globals = [
    '[Globals]',
    'ini_version=1',
    `port=tcp://127.0.0.1:${port}`,
    'security_layer=tls',
    'crypt_level=high',
    'ssl_protocols=TLSv1.2, TLSv1.3',
    'allow_channels=true',
    'max_bpp=32',
    'autorun=it',
  ];
  const lines = [...globals, ...pem, ...log, ...session, `port=${socket}`, 'code=20', ''];
  writeFileSync(config, lines.join('\n'));
  start(visit, program('xrdp'), ['--nodaemon', '--config', config]);
  await sleep(1500);
  const flags = ['/u:na', '/p:na', '/cert:ignore', '/f', '/bpp:24'];
  start(visit, program('xfreerdp'), [`/v:127.0.0.1:${port}`, ...flags]);
  await sleep(4000);
  return { ...visit, environment: { ...visit.environment, DISPLAY: display.name } };
}

const PYTHON = '/usr/bin/python3';
const TYPES = '/usr/lib/x86_64-linux-gnu/girepository-1.0/Atspi-2.0.typelib';

export const missingAtSpi = (): string | null =>
  existsSync(TYPES) && existsSync(PYTHON)
    ? null
    : 'AT-SPI is not installed (apt-get install at-spi2-core gir1.2-atspi-2.0 python3-gi)';

/** A session whose programs are told that there is assistive technology. */
export async function openAccessible(visit: Visit): Promise<Visit> {
  const bus = join(visit.directory, 'bus');
  start(visit, program('dbus-daemon'), ['--session', '--nofork', `--address=unix:path=${bus}`]);
  await eventually(() => access(bus));
  const told = { ACCESSIBILITY_ENABLED: '1', GNOME_ACCESSIBILITY: '1' };
  const environment = { ...visit.environment, ...told, DBUS_SESSION_BUS_ADDRESS: `unix:path=${bus}` };
  return { ...visit, environment };
}

/** What screen readers, voice control and switch control do: the button's own action, and no pointer. */
export function pressByScreenReader(visit: Visit): void {
  start(visit, PYTHON, [fileURLToPath(new URL('screen_reader.py', import.meta.url))]);
}
