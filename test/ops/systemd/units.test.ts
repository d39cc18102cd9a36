import { spawnSync } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { PROGRAM, tempDir } from '../../support/command.ts';
import { describeWithTool } from '../../support/tools.ts';

const UNITS = join(dirname(dirname(PROGRAM)), 'systemd');
/** Exposure in tenths, which `systemd-analyze security` prints as 1.5 of 10. */
const THRESHOLD = 15;

const analyze = (...args: string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' });
const missing =
  analyze('--version').status === 0 ? null : 'systemd-analyze is not installed (package systemd)';

describeWithTool('the systemd units', missing, () => {
  const folder = join(tempDir('units'), 'system');
  // A template is verified as one of its instances.
  const names = readdirSync(UNITS).map((name) => name.replace('@.', '@8081.'));
  beforeAll(() => {
    mkdirSync(folder);
    for (const name of readdirSync(UNITS)) {
      copyFileSync(join(UNITS, name), join(folder, basename(name).replace('@.', '@8081.')));
    }
  });

  it.each(names)('%s has no line that systemd does not know', (name) => {
    const { status, stdout, stderr } = analyze('verify', join(folder, name));
    expect({ status, said: (stdout + stderr).trim() }).toEqual({ status: 0, said: '' });
  });

  it.each(names.filter((name) => name.endsWith('.service')))('%s leaves little open', (name) => {
    const ran = analyze('security', '--offline=true', `--threshold=${THRESHOLD}`, join(folder, name));
    expect(ran.status, ran.stdout.split('\n').at(-2)).toBe(0);
  });

  it('docs/operate/health.md has them call a script when one fails', () => {
    const unitFolder = join(tempDir('units'), 'system');
    mkdirSync(unitFolder);
    for (const name of readdirSync(UNITS)) copyFileSync(join(UNITS, name), join(unitFolder, name));
    const page = readFileSync(join(dirname(UNITS), 'docs/operate/health.md'), 'utf8');
    const [block = ''] = page.split('### Hear of it')[1]?.match(/(?<=```sh\n)[^`]*/) ?? [];
    const commands = block
      .replaceAll('/etc/systemd/system', unitFolder)
      .replace('systemctl daemon-reload', '');
    expect(spawnSync('sh', ['-ec', commands], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
    const say = (name: string): string => {
      const env = { ...process.env, SYSTEMD_UNIT_PATH: `${unitFolder}:` };
      return spawnSync('systemd-analyze', ['verify', join(unitFolder, name)], { encoding: 'utf8', env })
        .stderr;
    };
    const ours = ['gpd-backup.service', 'gpd-doctor.service', 'gpd-retention.service'];
    expect(ours.map(say)).toEqual(['', '', '']);
    expect(say('on-failure@gpd-backup.service.service')).toContain('/etc/gpd/on-failure is not executable');
    // A line that systemd does not know shows that it reads the drop-in for each of them.
    appendFileSync(join(unitFolder, 'gpd-.service.d/on-failure.conf'), 'Unknown=1\n');
    for (const name of ours) expect(say(name)).toContain("Unknown key 'Unknown'");
  });
});

it.each(readdirSync(UNITS).filter((name) => name.endsWith('.service')))(
  '%s starts when the clock is right',
  (name) => {
    const unit = readFileSync(join(UNITS, name), 'utf8');
    expect(unit).toMatch(/^After=.*\btime-sync\.target\b/m);
    expect(unit).toMatch(/^Wants=.*\btime-sync\.target\b/m);
  },
);
