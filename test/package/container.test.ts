import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Copy, DockerfileParser, type Instruction, type PropertyInstruction } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { describe, expect, it } from 'vitest';
import { cleanEnvironment, type Environment, runProgram, tempDir } from '../support/command.ts';
import { ask } from '../support/http.ts';
import { startProcess } from '../support/process.ts';
import { describeWithTool } from '../support/tools.ts';
import { inLayer, missingLayer } from './layer.ts';

/** packaging/Containerfile as instructions, and each as what a shell would do for it. */

const CONTAINERFILE = fileURLToPath(new URL('../../packaging/Containerfile', import.meta.url));

interface Step {
  readonly keyword: string;
  readonly text: string;
  readonly words: readonly string[];
  /** The exec form; null for the shell form. */
  readonly exec: readonly string[] | null;
  /** `--from` and the like. */
  readonly flags: Readonly<Record<string, string>>;
  readonly properties: Readonly<Record<string, string>>;
}

interface Stage {
  readonly name: string | null;
  readonly image: string;
  readonly steps: readonly Step[];
}

interface Containerfile {
  readonly text: string;
  /** ARG before the first FROM. */
  readonly args: Readonly<Record<string, string>>;
  readonly stages: readonly Stage[];
}

/** `["a", "b"]`, behind flags or a word too. */
function execForm(text: string): readonly string[] | null {
  const list = /(?:^|\s)(\[.*\])$/.exec(text)?.[1];
  return list === undefined ? null : (JSON.parse(list) as string[]);
}

function stepOf(instruction: Instruction): Step {
  const keyword = instruction.getKeyword();
  const text = instruction.getArgumentsContent() ?? '';
  const words = instruction.getArguments().map((argument) => argument.getValue());
  const flags = 'getFlags' in instruction ? (instruction as Copy).getFlags() : [];
  const properties =
    'getProperties' in instruction ? (instruction as PropertyInstruction).getProperties() : [];
  return {
    keyword,
    text,
    words,
    exec: execForm(text),
    flags: Object.fromEntries(flags.map((flag) => [flag.getName(), flag.getValue() ?? ''])),
    properties: Object.fromEntries(properties.map((each) => [each.getName(), each.getValue() ?? ''])),
  };
}

function readContainerfile(text = readFileSync(CONTAINERFILE, 'utf8')): Containerfile {
  const args: Record<string, string> = {};
  const stages: { name: string | null; image: string; steps: Step[] }[] = [];
  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    const step = stepOf(instruction);
    if (step.keyword === 'FROM') {
      const [image = '', , name] = step.words;
      stages.push({ name: name ?? null, image, steps: [] });
    } else if (stages.length === 0) Object.assign(args, step.properties);
    else stages.at(-1)?.steps.push(step);
  }
  return { text, args, stages };
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** COPY as cp does it: a folder's content into a folder, files into a folder that ends with a slash. */
function copy(step: Step, context: string): string[] {
  const from = step.flags['from'] === undefined ? context : '';
  const [to = '', ...sources] = [...step.words].reverse();
  return sources.reverse().map((source) => {
    const path = quoted(`${from}/${source}`.replaceAll('//', '/'));
    const into = to.endsWith('/')
      ? 'mkdir -p "$to" && cp -a "$path" "$to"'
      : '{ mkdir -p "$(dirname "$to")"; if [ -d "$path" ]; then mkdir -p "$to"; cp -a "$path"/. "$to"; else cp -a "$path" "$to"; fi; }';
    return `path=${path} to=${quoted(to)}; ${into}`;
  });
}

/** A stage's steps as root of a machine that stands in for its image. */
function shellOf(stage: Stage, context: string): string[] {
  return stage.steps.flatMap((step) => {
    switch (step.keyword) {
      case 'WORKDIR':
        return [`mkdir -p ${quoted(step.words[0] ?? '')} && cd ${quoted(step.words[0] ?? '')}`];
      case 'ENV':
        return Object.entries(step.properties).map(([name, value]) => `export ${name}=${quoted(value)}`);
      case 'COPY':
        return copy(step, context);
      case 'RUN':
        return [`( ${step.text} )`];
      default:
        return [];
    }
  });
}

/** The last one of its kind, which is the one that counts. */
function last(stage: Stage, keyword: string): Step | undefined {
  return stage.steps.findLast((step) => step.keyword === keyword);
}

/** No container engine runs in a test: the file is judged by a strict parser, and its steps are executed one by one. */

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const { text, args, stages } = readContainerfile();
const [build, image] = stages;
if (build === undefined || image === undefined) throw new Error('the Containerfile has no two stages');

const sources = build.steps
  .filter(({ keyword }) => keyword === 'COPY')
  .flatMap(({ words }) => words.slice(0, -1));

describe('the Containerfile', () => {
  it('is right to a strict parser, which finds what is wrong', () => {
    expect(validate(text)).toEqual([]);
    expect(validate(text.replace('ENTRYPOINT [', 'ENTRYPONT ['))).not.toEqual([]);
    expect(validate(text.replace('--interval=30s', '--interval=soon'))).not.toEqual([]);
    expect(validate(text.replace('CMD ["serve"]', 'CMD ["serve"]\nCMD ["demo"]'))).not.toEqual([]);
  });

  it('names images by arguments, without a host', () => {
    for (const { image: from } of stages) {
      const name = args[/^\$\{(\w+)\}$/.exec(from)?.[1] ?? ''] ?? '';
      expect(name).toMatch(/^[a-z]+:\d+-[a-z-]+$/);
    }
    expect(text).not.toMatch(/\b[a-z0-9-]+\.(?:io|com|org|dev|net)\b/);
  });

  it('takes what it needs by name, and nothing of the clone else', () => {
    expect(sources.filter((source) => /^[./*]*$/.test(source))).toEqual([]);
    for (const source of sources) expect(existsSync(join(PROJECT, source)), source).toBe(true);
    const ignoreLines = readFileSync(`${CONTAINERFILE}.dockerignore`, 'utf8').trim().split('\n');
    expect(ignoreLines).toEqual(['*', ...sources.map((source) => `!${source}`).sort()]);
  });

  it('holds no secret and fetches nothing', () => {
    const names = stages.flatMap(({ steps }) => steps.flatMap(({ properties }) => Object.keys(properties)));
    expect(names.filter((name) => /secret|token|password|key/i.test(name))).toEqual([]);
    const keywords = stages.flatMap(({ steps }) => steps.map(({ keyword }) => keyword));
    expect(keywords).not.toContain('ADD');
    expect(text).not.toMatch(/curl|wget|\blatest\b/);
  });

  it('ends as a user of its own, with a volume, a health check, and programs without a shell', () => {
    expect(last(image, 'USER')?.text).toMatch(/^[1-9]\d{2,}:[1-9]\d{2,}$/);
    expect(last(image, 'VOLUME')?.exec).toEqual(['/var/lib/gpd']);
    for (const keyword of ['ENTRYPOINT', 'CMD', 'HEALTHCHECK'])
      expect(last(image, keyword)?.exec).not.toBeNull();
    // Nothing after USER may need root.
    const after = image.steps.slice(image.steps.findIndex(({ keyword }) => keyword === 'USER'));
    expect(after.map(({ keyword }) => keyword)).not.toContain('RUN');
  });
});

describe('bin/health.mjs', () => {
  const program = join(PROJECT, 'bin/health.mjs');

  it('says whether the server of the configuration lives', async () => {
    const gpd = await startProcess();
    const env = { GPD_DATA_DIR: gpd.dataDir, GPD_HOST: '0.0.0.0', GPD_PORT: String(gpd.port) };
    expect(await runProgram([], { program, env })).toMatchObject({ code: 0, stdout: '', stderr: '' });
    await gpd.stop();
    expect(await runProgram([], { program, env })).toMatchObject({ code: 1, stdout: '' });
    expect((await runProgram([], { program, env })).stderr).toMatch(/^gpd: .*ECONNREFUSED/);
  });
});

/** The parser that `docker compose` itself uses, at one version. */
const COMPOSE = ['run', 'github.com/compose-spec/compose-go/v2/cmd@v2.16.2', '-format', 'json'];

interface Service {
  readonly image: string;
  readonly environment: Environment;
  readonly profiles?: readonly string[];
}

function readCompose(text: string): { readonly services: Readonly<Record<'gpd' | 'postgres', Service>> } {
  const folder = tempDir('compose');
  writeFileSync(join(folder, 'compose.yaml'), text);
  const env = cleanEnvironment();
  return JSON.parse(
    execFileSync('go', [...COMPOSE, 'compose.yaml'], { cwd: folder, env, encoding: 'utf8', stdio: 'pipe' }),
  ) as ReturnType<typeof readCompose>;
}

const isThere = spawnSync('go', [...COMPOSE, '-help']).status === 0;

describeWithTool('compose.yaml', isThere ? null : 'it takes go and a module proxy', () => {
  const compose = readFileSync(join(PROJECT, 'compose.yaml'), 'utf8');

  it('is right to the parser of docker compose, which finds what is wrong', { timeout: 480_000 }, () => {
    const { gpd, postgres } = readCompose(compose).services;
    expect([gpd.image, postgres.image]).toEqual(['gpd', expect.stringMatching(/^postgres:\d+-bookworm$/)]);
    expect(postgres.profiles).toEqual(['postgres']);
    expect(() => readCompose(compose.replace('retries:', 'retires:'))).toThrow(/'retires' not allowed/);
  });

  it('has no secret in it: it names files', () => {
    const { gpd, postgres } = readCompose(compose).services;
    const names = Object.keys({ ...gpd.environment, ...postgres.environment });
    expect(names.filter((name) => /KEY|PASSWORD|SECRET|DATABASE|SMTP/.test(name))).toEqual(
      expect.arrayContaining(['GPD_DATABASE_URL_FILE', 'GPD_MASTER_KEY_FILE', 'POSTGRES_PASSWORD_FILE']),
    );
    expect(names.filter((name) => /(?:KEY|PASSWORD|SECRET|URL)$/.test(name))).toEqual(['GPD_BASE_URL']);
  });

  it('sets what gpd serves a first tenant with', async () => {
    const { environment } = readCompose(compose).services.gpd;
    const dataDir = join(tempDir('data'), 'gpd-data');
    const gpd = await startProcess({ dataDir, settings: environment });
    expect((await ask(`http://127.0.0.1:${gpd.port}`, '/readyz')).status).toBe(200);
    expect(await gpd.json(['tenants', 'list'])).toMatchObject([{ kid: 'shop' }]);
    expect(await gpd.stop()).toMatchObject({ code: 0 });
  });
});

describeWithTool('the container, step by step', missingLayer(['setpriv', 'curl']), () => {
  it('is built of what is copied, runs with a read-only root, heals, ends with 0', {
    timeout: 480_000,
  }, async () => {
    const port = String(30_000 + (process.pid % 2000));
    const keep = mkdtempSync('/var/tmp/gpd-container-');
    try {
      // The context, and beside it the packages, so that npm does not compile SQLite once more: as `npm ci` leaves them.
      const packages =
        '[ -e node_modules ] || cp -al "$PROJECT/node_modules" node_modules 2>/dev/null || cp -a "$PROJECT/node_modules" .';
      execFileSync('bash', ['-c', `cd "$PROJECT" && cp -a --parents ${sources.join(' ')} "$KEEP"`], {
        env: { ...process.env, PROJECT, KEEP: keep },
      });
      const environment = Object.entries(last(image, 'ENV')?.properties ?? {}).map(
        ([name, value]) => `${name}=${value}`,
      );
      const entry = (last(image, 'ENTRYPOINT')?.exec ?? []).join(' ');
      const script = `set -euo pipefail
        # First stage.
        (${shellOf(build, keep)
          .map((line) => (line.includes('bootstrap.mjs') ? `${packages}\n${line}` : line))
          .join('\n')})
        # Second stage.
        (${shellOf(image, keep).join('\n')})
        test ! -e /usr/lib/gpd/node_modules/typescript
        cmp /usr/share/doc/gpd/verify.py "$PROJECT/docs/verify.py"
        test -z "$(find /usr/lib/gpd -newermt 2100-01-01 -o -name '*.key' -o -name '.npmrc' -o -name '.git')"
        # As an engine would run it: a volume, everything else read-only, nothing of root.
        mkdir -p /run/volume && cp -a /var/lib/gpd/. /run/volume && chown --reference=/var/lib/gpd /run/volume && chmod --reference=/var/lib/gpd /run/volume
        mount --bind /run/volume /var/lib/gpd
        mkdir -p /etc/gpd && cd /etc/gpd
        mount -o remount,ro /
        mount -o remount,ro /tmp
        ! touch /etc/gpd/x 2> /dev/null
        become() {
          exec setpriv --reuid=1000 --regid=1000 --clear-groups --no-new-privs --bounding-set=-all -- \\
            env -i PATH="$PATH" ${environment.join(' ')} GPD_PORT=${port} GPD_BASE_URL=https://id.shop.example GPD_TRUSTED_PROXIES=10.88.0.1 "$@"
        }
        inside() { ( become "$@" ); }
        ! inside ${entry} ${(last(image, 'CMD')?.exec ?? []).join(' ')} || exit 91
        inside ${entry} init --tenant shop --origin https://shop.example --controller 'Shop Ltd, 1 High Street' --contact privacy@shop.example
        ! inside ${(last(image, 'HEALTHCHECK')?.exec ?? []).join(' ')} 2> /run/unwell || exit 92
        grep ECONNREFUSED /run/unwell
        ( become ${entry} ${(last(image, 'CMD')?.exec ?? []).join(' ')} ) &
        server=$!
        for _ in $(seq 200); do curl -fs http://127.0.0.1:${port}/readyz > /dev/null && break; sleep 0.1; done
        inside ${(last(image, 'HEALTHCHECK')?.exec ?? []).join(' ')}
        for path in /docs /v1/agent.js /v1/embed.js /openapi.json; do
          echo "$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:${port}$path) $path"
        done
        inside ${entry} doctor
        test "$(stat -c %u /proc/$server)" = 1000
        kill -TERM "$server" && wait "$server"
        echo '== ran'`;
      const { code, output } = await inLayer(script);
      expect(output).toContain('== ran');
      expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' });
      expect(output.match(/^200 \//gm)).toHaveLength(4);
      expect(output).toMatch(/checks: 0 fail/);
    } finally {
      rmSync(keep, { recursive: true, force: true });
    }
  });
});
