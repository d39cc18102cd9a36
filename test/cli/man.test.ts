import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { NOTES } from '../../bin/gen/notes.ts';
import { example, page, plain, prose } from '../../bin/gen/roff.ts';
import { makeProgram } from '../../src/cli/gpd.ts';
import { SETTING_NAMES } from '../../src/schema/settings.ts';
import { gpdJson, runGpd } from '../support/command.ts';
import { describeWithTool } from '../support/tools.ts';
import { exampleFault } from './support/man-examples.ts';

const MAN = fileURLToPath(new URL('../../docs/man', import.meta.url));
/** Bold and italics of a terminal that prints on paper. */
const OVERSTRUCK = new RegExp(`.${String.fromCharCode(8)}`, 'g');
const pages = readdirSync(MAN).sort();

function missing(tool: string): string | null {
  const found = spawnSync('sh', ['-c', `command -v ${tool}`]).status === 0;
  return found ? null : `not installed (apt-get install ${tool})`;
}

describe('the pages of docs/man', () => {
  it('are one for each command that help shows, gpd(1) and gpd.toml(5)', async () => {
    const { script } = await gpdJson<{ script: string }>(['completion', 'bash']);
    const commands = [...script.matchAll(/^ {6}"gpd ([a-z-]+)"\) path=/gm)].map((match) => match[1]);
    expect(commands.length).toBeGreaterThan(20);
    expect(pages).toEqual(['gpd.1', 'gpd.toml.5', ...commands.map((name) => `gpd-${name}.1`)].sort());
  });

  it('gpd.toml(5) has every setting with its environment name', () => {
    const text = readFileSync(join(MAN, 'gpd.toml.5'), 'utf8');
    for (const name of SETTING_NAMES) {
      expect(text).toContain(`\\fB${name}\\fR (\\fBGPD_${name.toUpperCase()}\\fR)`);
    }
  });

  it('an option that a command has is on its page', async () => {
    const text = readFileSync(join(MAN, 'gpd-replay.1'), 'utf8').replaceAll('\\-', '-');
    const { stdout } = await runGpd(['replay', '--help']);
    const options = [...stdout.matchAll(/^ {2}(--[a-z-]+)/gm)].map((match) => match[1] ?? '');
    expect(options).toContain('--policy');
    for (const option of options) expect(text).toContain(`\\fB${option}\\fR`);
  });
});

describeWithTool('man pages: mandoc', missing('mandoc'), () => {
  it.each(pages)('%s: nothing to say against it', (name) => {
    const { status, stdout, stderr } = spawnSync('mandoc', ['-T', 'lint', join(MAN, name)], {
      encoding: 'utf8',
    });
    expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' });
  });

  it('would say so', () => {
    const { status, stdout } = spawnSync('mandoc', ['-T', 'lint'], {
      input: '.TH A 1\n.SH NAME\n.NOSUCH x\n',
      encoding: 'utf8',
    });
    expect(status).not.toBe(0);
    expect(stdout).toContain('NOSUCH');
  });

  it('shows text as it was meant', () => {
    const text = page({ name: 'gpd-x', section: 1, about: 'about', version: '1' }, [
      { title: 'DESCRIPTION', lines: [prose('.begins `--with` a dot, has C:\\path and a people’s … word')] },
      { title: 'EXAMPLES', lines: example(["'quoted' first", 'gpd x --y "a\\nb"']) },
    ]);
    const shown = execFileSync('mandoc', ['-T', 'utf8', '-O', 'width=200'], {
      input: text,
      encoding: 'utf8',
    });
    const unstyled = shown.replace(OVERSTRUCK, '');
    expect(unstyled).toContain('.begins --with a dot, has C:\\path and a people’s ... word');
    expect(unstyled).toContain("'quoted' first");
    expect(unstyled).toContain('gpd x --y "a\\nb"');
  });
});

describe('text of a page', () => {
  it('is no macro', () => {
    expect(plain('.SH x')).toBe('\\&.SH x');
    expect(plain("it's\n'br")).toBe("it's\n\\&'br");
    expect(plain('a\\b-c ü')).toBe('a\\eb\\-c \\[u00FC]');
  });

  it('is short lines, and no word that begins with a dot comes to begin one', () => {
    const text = page({ name: 'x', section: 1, about: 'y', version: '1' }, [
      { title: 'DESCRIPTION', lines: [`${'word '.repeat(15)}.dot ${'word '.repeat(40)}`] },
    ]);
    const lines = text.split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(lines.filter((line) => /^\.(?!TH|SH|\\")/.test(line))).toEqual([]);
  });
});

describe('an example', () => {
  it('of a page can be typed, and the commands beside it are there', async () => {
    const all = await makeProgram([]);
    const shown = all.createHelp().visibleCommands(all);
    const names = shown.map((command) => command.name());
    for (const [name, { examples, see = [] }] of Object.entries(NOTES)) {
      expect(names).toEqual(expect.arrayContaining([name, ...see]));
      expect(examples.map((line) => exampleFault(all, line))).toEqual(examples.map(() => null));
    }
  });

  const program = new Command('gpd').option('--json');
  program.command('keys').command('rotate <kid>').option('--grace <duration>').option('--force');

  it.each(['gpd keys rotate shop', 'gpd keys rotate shop --grace 7d --force', 'gpd keys rotate a < b --c'])(
    '%s is right',
    (line) => {
      expect(exampleFault(program, line)).toBeNull();
    },
  );

  it.each([
    ['npm keys rotate shop', /does not begin/],
    ['gpd rotate shop', /no such command/],
    ['gpd keys', /no such command/],
    ['gpd keys rotat shop', /no such command/],
    ['gpd keys rotate shop --grave 7d', /has no --grave/],
    ['gpd keys rotate --grace 7d', /wants 1 arguments/],
  ])('%s is found', (line, why) => {
    expect(exampleFault(program, line)).toMatch(why);
  });
});
