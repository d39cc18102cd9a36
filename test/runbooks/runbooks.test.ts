import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { tempDir } from '../support/command.ts';
import { describeWithTool } from '../support/tools.ts';

/** The runbooks of docs/operate, followed word for word by a shell. */

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const HOUSE = fileURLToPath(new URL('house.sh', import.meta.url));

function missing(): string | null {
  try {
    execFileSync('unshare', ['-m', 'sh', '-c', 'mount -t tmpfs tmpfs /mnt'], { stdio: 'ignore' });
    for (const tool of ['curl', 'useradd', 'runuser', 'pgrep', 'fallocate']) {
      execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' });
    }
    return null;
  } catch {
    return 'it takes root, a mount namespace, curl, pgrep, useradd and runuser';
  }
}

function blocksOf(page: string): string[] {
  const text = readFileSync(`${PROJECT}/docs/operate/${page}.md`, 'utf8');
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '');
}

interface Story {
  /** Before the first block. */
  readonly before?: string;
  /** After the block of this number, from 1: what a person does beside the page, and what has to be true. */
  readonly after?: Readonly<Record<number, string>>;
}

interface Followed {
  readonly code: number | null;
  readonly output: string;
}

/** An ephemeral port would do for nobody else; the machine needs its port before it starts. */
let port = 24_000 + (process.pid % 4000);

function follow(pages: readonly (readonly [page: string, story?: Story])[]): Promise<Followed> {
  port += 1;
  const scripts = pages.flatMap(([page, { before = '', after = {} } = {}]) => [
    before,
    ...blocksOf(page).flatMap((block, i) => [`echo "== ${page} ${i + 1}"`, block, after[i + 1] ?? '']),
  ]);
  const env = {
    PATH: process.env['PATH'],
    SCRATCH: tempDir('house'),
    PROJECT,
    PORT: String(port),
    HOME: '/root',
  };
  const script = [`. ${HOUSE}`, ...scripts, 'echo "== followed"'].join('\n');
  const child = spawn('unshare', ['-m', 'bash', '-c', script], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })));
}

function expectFollowed({ code, output }: Followed): void {
  expect(output).toContain('== followed');
  expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' });
}

const TIMEOUT = { timeout: 240_000 };

describeWithTool('runbooks', missing(), () => {
  it('first day, then a restore of what was lost', TIMEOUT, async () => {
    const followed = await follow([
      [
        'first-day',
        {
          after: {
            7: 'test "$(stat -c %U:%a /var/lib/gpd/backups/gpd-*.backup)" = gpd:600; systemd-analyze verify /etc/systemd/system/gpd-backup.timer || true',
          },
        },
      ],
      [
        'restore',
        {
          before: `gpd tenants add lost-after-the-backup
            systemctl stop gpd; head -c 100000 /dev/urandom > /var/lib/gpd/gpd.db`,
          after: {
            3: 'test "$(gpd tenants list --json | grep -c lost-after)" = 0; test "$(stat -c %U /var/lib/gpd/gpd.db)" = gpd',
          },
        },
      ],
    ]);
    expectFollowed(followed);
    expect(followed.output).toMatch(/is whole and would be restored/);
    expect(followed.output).toMatch(/fail +database\.reachable/);
    expect(followed.output).toMatch(/The log is whole/);
    expect(followed.output.match(/checks: 0 fail/g)).toHaveLength(2);
  });

  it('a key is in the wrong hands', TIMEOUT, async () => {
    const followed = await follow([
      ['first-day'],
      [
        'key-compromise',
        {
          before: 'cp /var/lib/gpd/master.key /root/old-master-key',
          after: { 4: '! cmp -s /var/lib/gpd/master.key /root/old-master-key' },
        },
      ],
    ]);
    expectFollowed(followed);
    expect(followed.output).toMatch(/revoked/i);
    expect(followed.output).toMatch(/shop generation 1: destroyed/);
  });

  it('the disk is full', TIMEOUT, async () => {
    const full = 'dd if=/dev/zero of=/var/lib/gpd/backups/filler bs=1M 2> /dev/null';
    const followed = await follow([
      ['first-day'],
      [
        'disk-full',
        {
          before: `${full} && exit 90
            code=0; gpd tenants add no-room || code=$?; echo "a write ended with $code"; test "$code" != 0
            curl -fs "http://127.0.0.1:$PORT/healthz"`,
          after: { 1: 'gpd tenants add with-the-reserve', 2: 'rm /var/lib/gpd/backups/filler' },
        },
      ],
    ]);
    expectFollowed(followed);
    expect(followed.output).toMatch(/a write ended with 75/);
    expect(followed.output).toMatch(/^active$/m);
  });

  it('the identity provider does not answer', TIMEOUT, async () => {
    // Answers as a provider does whose front is up and whose back is not.
    const provider = createServer((_request, response) => response.writeHead(502).end());
    await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
    const issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
    const settings = `printf 'oidc_issuer = "${issuer}"\\noidc_audience = "gpd"\\n' >> /etc/gpd/gpd.toml`;
    const followed = await follow([['first-day'], ['idp-down', { before: settings }]]);
    provider.close();
    expectFollowed(followed);
    expect(followed.output).toMatch(/fail +oidc\.discovery +discovery document: it answered 502/);
  });
});
