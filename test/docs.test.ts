import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { fileOf, PICTURES, THEMES } from '../bin/pictures/pictures.ts';
import { agentPrompt } from '../src/ops/agent-prompt.ts';
import { CHECKS } from '../src/ops/doctor/doctor-service.ts';
import { environmentName, SETTING_NAMES } from '../src/schema/settings.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => join('docs', name));
const PAGES = ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...docs];

/** GitHub derives anchors from headings by these rules. */
const anchorsOf = (page: string): readonly string[] =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

describe('docs/dependencies.md', () => {
  const manifest = JSON.parse(read('package.json')) as Record<
    'dependencies' | 'optionalDependencies' | 'devDependencies',
    object
  >;
  const [, runTime = '', optional = '', development = ''] = read('docs/dependencies.md').split(/^## .*$/m);
  const named = (section: string): string[] =>
    [...section.matchAll(/^\| (\S+) \|/gm)].map((row) => row[1] ?? '').filter((name) => name !== 'package');

  it('gives a reason for every dependency, and for nothing else', () => {
    expect(named(runTime)).toEqual(Object.keys(manifest.dependencies));
    expect(named(optional)).toEqual(Object.keys(manifest.optionalDependencies));
    expect(named(development)).toEqual(Object.keys(manifest.devDependencies));
  });
});

describe('the pages', () => {
  it.each(PAGES)('%s links to pages and headings that exist', (page) => {
    const links = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map((link) => link[1] ?? '');
    const broken = links.filter((link) => {
      const [path = '', anchor] = link.split('#');
      if (/^(?:https?|mailto):/.test(link)) return false;
      const target = path === '' ? page : join(dirname(page), path);
      return !existsSync(join(root, target)) || (anchor !== undefined && !anchorsOf(target).includes(anchor));
    });
    expect(broken).toEqual([]);
  });

  it('show each picture that `npm run pictures` draws, and no other', () => {
    // `npm run bench` draws the last one.
    const drawn = [...PICTURES.flatMap((one) => THEMES.map((theme) => fileOf(one, theme))), 'bench.svg'];
    const shown = PAGES.flatMap((page) =>
      [...read(page).matchAll(/images\/([\w-]+\.(?:png|svg))/g)].map(([, name]) => name ?? ''),
    );
    expect(readdirSync(join(root, 'docs/images')).toSorted()).toEqual(drawn.toSorted());
    expect([...new Set(shown)].toSorted()).toEqual(drawn.toSorted());
  });

  it('the prompt for coding agents is that of the page Next', () =>
    expect(read('docs/coding-agents.md')).toContain(agentPrompt('https://id.shop.example', 'gpd_pk_…')));

  it('nothing that people copy sets a name on which gpd would refuse to start', () => {
    // The first two belong to the SDKs (contract section 11); GPD_CREDENTIAL_FDS is no setting.
    const otherNames = new Set([
      'GPD_CONSENT_URL',
      'GPD_CONSENT_KEY',
      'GPD_CREDENTIAL_FDS',
      ...SETTING_NAMES.map(environmentName),
    ]);
    const readmes = ['node', 'python', 'go', 'java'].map((name) => `sdk/${name}/README.md`);
    const named = [...docs, ...readmes, 'README.md'].flatMap((page) =>
      [...read(page).matchAll(/\bGPD_[A-Z0-9_]*[A-Z0-9]\b/g)].map(([name]) => `${page} ${name}`),
    );
    expect(named.filter((one) => !otherNames.has(one.split(' ')[1] ?? ''))).toEqual([]);
  });

  it('each decision that code or a page names has a page', () => {
    const numbers = new Set(readdirSync(join(root, 'docs/adr')).map((name) => name.slice(0, 4)));
    const sources = ['src', 'test', 'migrations', 'systemd'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => /\.(?:ts|mjs|js|service)$/.test(name))
        .map((name) => join(folder, name)),
    );
    const named = [...sources, ...docs].flatMap((file) =>
      [...read(file).matchAll(/\bADR (\d{4})/g)].map(([, number = '']) => ({ file, number })),
    );
    expect(named.length).toBeGreaterThan(30);
    expect(named.filter(({ number }) => !numbers.has(number))).toEqual([]);
  });

  it('README.md begins with the two commands', () => {
    const commands = [...read('README.md').matchAll(/^```sh\n(.*)\n```$/gm)].map((block) => block[1]);
    expect(commands.slice(0, 2)).toEqual(['npm run demo', 'npm test']);
  });

  it('docs/operate/health.md counts the checks of the doctor right', () => {
    const page = read('docs/operate/health.md');
    expect(/(\d+) checks/.exec(page)?.[1]).toBe(String(CHECKS.length));
  });

  it('ARCHITECTURE.md stays a page that is read, and its reading path a day', () => {
    const [before = '', path = '', after = ''] = read('ARCHITECTURE.md').split(
      /^## (?=Reading|What a process)/m,
    );
    expect(`${before}${after}`.split('\n').length).toBeLessThanOrEqual(150);
    const files = [...path.matchAll(/^\| `(.+?)` \|/gm)].map(([, file]) => file);
    expect(files.length).toBeGreaterThan(30);
    expect(files.length).toBeLessThanOrEqual(60);
    const lines = files.map((file) => read(`src/${file}`).split('\n').length - 1);
    expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(9000);
  });
});
