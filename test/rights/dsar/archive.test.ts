import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it, vi } from 'vitest';
import { RULES } from '../../../src/ingest/verdict/classify.ts';
import { readCodebook } from '../../../src/rights/dsar/archive-page-files.ts';
import { CSV_COLUMNS } from '../../../src/rights/dsar/decisions-csv.ts';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { dumpDatabase } from '../../support/database.ts';
import { describeWithTool } from '../../support/tools.ts';
import {
  createRecipient,
  type Held,
  HOSTILE,
  holdSomebody,
  missingTool,
  PRINCIPAL,
  requestId,
  run,
  unpack,
  VISITOR,
  write,
} from './support.ts';

const FILES = [
  'codebook.html',
  'decisions.csv',
  'export.json',
  'index.html',
  'manifest.json',
  'manifest.p7s',
];

interface Exported {
  readonly file: string;
  readonly decisions: number;
  readonly sha256: string;
  readonly size: number;
  readonly encrypted: boolean;
  readonly signer: string;
}

// Each starts the program, and the first of them makes a key of 3072 bits.
vi.setConfig({ testTimeout: 120_000 });

let subject: Held;
beforeAll(async () => {
  subject = await holdSomebody();
});

async function exportTo(name: string, ...flags: string[]): Promise<Exported> {
  const file = join(tempDir('out'), name);
  const ran = await subject.cli('dsar', 'export', '--tenant', KID, '--out', file, '--json', ...flags);
  expect(ran).toMatchObject({ code: 0 });
  return JSON.parse(ran.stdout) as Exported;
}

const read = (directory: string, name: string): string => readFileSync(join(directory, name), 'utf8');
const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

interface Export {
  readonly subject: { readonly device: object | null; readonly linkedRequests: readonly object[] };
  readonly decisions: readonly { readonly requestId: string; readonly rules: readonly object[] }[];
  readonly contests: readonly { readonly statement: string | null }[];
  readonly consent: { readonly principalId: string; readonly history: readonly object[] } | null;
  readonly override: object | null;
}
const exported = (directory: string): Export => JSON.parse(read(directory, 'export.json')) as Export;

/** This strict parser follows RFC 4180. */
function parseCsv(text: string): string[][] {
  const records: string[][] = [];
  let rest = text;
  let record: string[] = [];
  while (rest !== '') {
    const cell = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/.exec(rest);
    if (!cell) throw new Error(`no cell: ${JSON.stringify(rest.slice(0, 80))}`);
    record.push((cell[1] ?? cell[2] ?? '').replaceAll('""', '"'));
    if (cell[3] === '\r\n') {
      records.push(record);
      record = [];
    }
    rest = rest.slice(cell[0].length);
  }
  return records;
}

/** Every path to a value, with [] for each of a list. */
function pathsOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((one: unknown) => pathsOf(one, `${path}[]`));
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, part]) => {
    const here = path === '' ? name : `${path}.${name}`;
    return [here, ...pathsOf(part, here)];
  });
}

const noOpenssl = missingTool('openssl', 'version');
const noUnzip = missingTool('unzip', '-v');

describeWithTool('gpd dsar export', noUnzip, () => {
  it('packs everything behind a visitorId, for its owner only', async () => {
    const dsarFile = await exportTo('a.zip', `--visitor=${VISITOR}`);
    const bytes = readFileSync(dsarFile.file);
    const result = { decisions: 5, size: bytes.length, sha256: hash(bytes), encrypted: false };
    expect(dsarFile).toMatchObject(result);
    expect((statSync(dsarFile.file).mode & 0o777).toString(8)).toBe('600');
    expect(readdirSync(join(dsarFile.file, '..'))).toEqual(['a.zip']);
    const directory = unpack(dsarFile.file);
    expect(readdirSync(directory).sort()).toEqual(FILES);
    const { subject, decisions, contests, override, consent } = exported(directory);
    expect(decisions.map((one) => one.requestId)).toEqual([4, 3, 2, 1, 0].map(requestId));
    expect(contests.map((one) => one.statement)).toEqual([HOSTILE, null]);
    expect(subject.device).toMatchObject({ seen: 5, visitorIds: [{ visitorId: VISITOR, epoch: 680 }] });
    expect(override).toMatchObject({ neverAutomation: true });
    expect(consent).toBeNull();
    const text = expect.stringContaining('program') as string;
    expect(decisions[3]?.rules[0]).toMatchObject({ id: 'A1', text });
    // A requestId leads to the same device.
    const byRequest = exported(unpack((await exportTo('r.zip', '--request', requestId(1))).file));
    expect(byRequest.decisions).toEqual(decisions);
    expect(byRequest.subject.device).toEqual(subject.device);
  });

  it('a principal leads to linked requests and consent, and to nobody else’s visit', async () => {
    const { file, decisions } = await exportTo('p.zip', '--principal', PRINCIPAL);
    expect(decisions).toBe(1);
    const directory = unpack(file);
    const { subject, consent, ...rest } = exported(directory);
    expect(rest.decisions.map((one) => one.requestId)).toEqual([requestId(101)]);
    expect(subject).toMatchObject({ device: null, linkedRequests: [{ requestId: requestId(101) }] });
    expect(consent).toMatchObject({ principalId: PRINCIPAL });
    expect(consent?.history).toHaveLength(4);
    expect(consent?.history[2]).toMatchObject({ type: 'consent.doubted', class: 'undeclared_automation' });
    expect(consent?.history[3]).toMatchObject({ gpc: true, overGpc: true });
    expect(read(directory, 'index.html')).toContain('granted, over Global Privacy Control');
  });

  it('decisions.csv has the same decisions, and nothing a spreadsheet would run', async () => {
    const directory = unpack((await exportTo('c.zip', `--visitor=${VISITOR}`)).file);
    const text = read(directory, 'decisions.csv');
    // Excel reads it as UTF-8 by this mark alone.
    expect(text.codePointAt(0)).toBe(0xfeff);
    const [header, ...records] = parseCsv(text.slice(1));
    expect(header).toEqual(CSV_COLUMNS);
    expect(records.map((record) => record[0])).toEqual(
      exported(directory).decisions.map((one) => one.requestId),
    );
    expect(new Set(records.map((record) => record.length))).toEqual(new Set([CSV_COLUMNS.length]));
    expect(records.flat().filter((cell) => /^\s*[=+\-@\t\r]/.test(cell))).toEqual([]);
    const statement = records[3]?.[CSV_COLUMNS.indexOf('contestStatement')];
    expect(statement).toMatch(/^'=HYPERLINK/);
    expect(statement).toContain('[U+202E]gpj.exe[U+202C]');
  });

  it('the pages run nothing, load nothing and escape everything', async () => {
    const directory = unpack((await exportTo('h.zip', `--visitor=${VISITOR}`)).file);
    for (const name of ['index.html', 'codebook.html']) {
      const page = read(directory, name);
      expect(page).not.toMatch(
        /<script|<img|\son[a-z]+\s*=\s*["']|javascript:|\sstyle=|<link|@import|url\(/i,
      );
      expect(page).not.toMatch(/(?!\n)\p{Cc}|[\u202A-\u202E\u2066-\u2069]/u);
      const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(page) ?? [];
      const allowed = createHash('sha256').update(style).digest('base64');
      expect(page).toContain(`default-src 'none'; style-src 'sha256-${allowed}'`);
      expect(page.match(/<style/g)).toHaveLength(1);
    }
    const index = read(directory, 'index.html');
    // One of the five decisions.
    expect(index.match(/The weights add up to 1\.\d\d; the highest score is 1\./g)).toHaveLength(1);
    expect(index).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(2)&gt;');
    expect(index).toContain('[U+202E]gpj.exe[U+202C] &lt;/style&gt;&lt;/dd&gt;[U+0000] &amp;amp; נכון');
    for (const n of [0, 1, 2, 3, 4]) expect(index).toContain(requestId(n));
  });

  it('index.html begins with a summary in the language that was asked for, or that the person objected in', async () => {
    const english = unpack((await exportTo('en.zip', `--visitor=${VISITOR}`)).file);
    expect(read(english, 'index.html')).not.toContain('id="summary"');
    const titles = {
      de: 'Was über Sie gespeichert ist',
      fr: 'Les données conservées à votre sujet',
      es: 'Lo que se conserva sobre usted',
      it: 'Che cosa è conservato su di lei',
      pl: 'Jakie dane osobowe są przechowywane',
    };
    for (const [language, title] of Object.entries(titles)) {
      const flags = [`--visitor=${VISITOR}`, '--language', language];
      const page = read(unpack((await exportTo(`${language}.zip`, ...flags)).file), 'index.html');
      const [, summary = ''] =
        new RegExp(`<section class="stack" lang="${language}"([^]*?)</section>`).exec(page) ?? [];
      expect(summary).toContain(`<h2 id="summary">${title}</h2>`);
      expect(summary).toMatch(/: 5\. [\p{L} ]+: 2\./u);
      expect(summary).not.toMatch(/\{|>class\.|undefined/);
    }
    const flags = ['dsar', 'export', '--tenant', KID, '--visitor', VISITOR, '--language', 'nl', '--out'];
    const refused = await subject.cli(...flags, join(tempDir('out'), 'nl.zip'));
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.stderr).toContain('--language nl: must be one of en, de, fr, es, it, pl');
  });

  it('codebook.html explains every rule, class, defence, field and column that there is', async () => {
    const directories = await Promise.all(
      [`--visitor=${VISITOR}`, `--principal=${PRINCIPAL}`].map(async (who, i) =>
        unpack((await exportTo(`k${i}.zip`, who)).file),
      ),
    );
    const { classes, defenses, fields, columns } = await readCodebook();
    const explained = new Set(Object.keys(fields));
    const there = new Set(directories.flatMap((directory) => pathsOf(exported(directory))));
    expect([...there].filter((path) => !explained.has(path))).toEqual([]);
    expect([...explained].filter((path) => !there.has(path))).toEqual([]);
    const page = read(directories[0] ?? '', 'codebook.html');
    const names = [classes, defenses, fields, columns].flatMap((meanings) => Object.keys(meanings));
    const ids = [...names, ...RULES.map(({ id }) => id), ...CSV_COLUMNS];
    expect(ids.filter((id) => !page.includes(`>${id}<`))).toEqual([]);
    expect(page).not.toContain('<dd></dd>');
  });

  it('writes who exported what into the audit log, by reference', async () => {
    const before = (await dumpDatabase(subject.dataDir))['audit_log'] ?? [];
    await exportTo('audit.zip', `--visitor=${VISITOR}`);
    const rows = (await dumpDatabase(subject.dataDir))['audit_log'] ?? [];
    const [row = '{}', ...otherRows] = rows.filter((one) => !before.includes(one));
    expect(otherRows).toEqual([]);
    const act = { kid: KID, role: 'operator', action: 'dsar.staff-exported' };
    expect(JSON.parse(row)).toMatchObject({ ...act, detail: '{"decisions":5,"encrypted":false}' });
    expect(row).not.toContain(VISITOR);
    expect(row).not.toContain('durable-of');
  });
});

describeWithTool('the signature of an archive', noOpenssl ?? noUnzip, () => {
  let directory: string;
  let certificate: string;
  let manifest: string;
  let signature: string;
  beforeAll(async () => {
    const dsarFile = await exportTo('signed.zip', `--visitor=${VISITOR}`);
    directory = unpack(dsarFile.file);
    const printed = await subject.cli('dsar', 'certificate', '--json');
    const value = JSON.parse(printed.stdout) as { certificate: string; fingerprint: string };
    expect(value.fingerprint).toBe(dsarFile.signer);
    certificate = write(join(directory, 'signer.pem'), value.certificate);
    [manifest, signature] = [join(directory, 'manifest.json'), join(directory, 'manifest.p7s')];
    expect(run('openssl', ['x509', '-in', certificate, '-noout', '-fingerprint', '-sha256'])).toContain(
      dsarFile.signer,
    );
  });

  const verify = (content: string, by: string, ...trust: string[]): string => {
    const from = ['-inform', 'DER', '-in', by, '-content', content, '-out', '/dev/null'];
    return run('openssl', ['cms', '-verify', ...from, ...trust]);
  };

  it('is verified by openssl, with its certificate pinned and with no other', () => {
    verify(manifest, signature, '-binary', '-noverify');
    verify(manifest, signature, '-binary', '-CAfile', certificate);
    // Without -binary it takes a text line by line.
    verify(manifest, signature, '-CAfile', certificate);
    const other = createRecipient().certificate;
    expect(() => verify(manifest, signature, '-binary', '-CAfile', other)).toThrow(/verif/i);
  });

  it('covers every byte: the manifest names the hash of each other file, and the signature its own', () => {
    const listed = JSON.parse(read(directory, 'manifest.json')) as {
      files: { name: string; size: number; sha256: string }[];
    };
    const found = listed.files.map(({ name }) => {
      const bytes = readFileSync(join(directory, name));
      return { name, size: bytes.length, sha256: hash(bytes) };
    });
    expect(listed.files).toEqual(found);
    expect(listed).toMatchObject({ format: 'gpd-dsar-archive/1', tenant: KID, decisions: 5 });
    expect([...found.map(({ name }) => name), 'manifest.json', 'manifest.p7s'].sort()).toEqual(FILES);
  });

  it('fails for one changed byte of the manifest or of itself', () => {
    const flipped = (path: string, at: number): string => {
      const changed = readFileSync(path);
      changed[at] = (changed[at] ?? 0) ^ 1;
      return write(join(directory, 'changed'), changed);
    };
    for (const at of [0, 100, statSync(manifest).size - 1])
      expect(() => verify(flipped(manifest, at), signature, '-binary', '-noverify')).toThrow(/digest|verif/i);
    const changed = flipped(signature, statSync(signature).size - 10);
    expect(() => verify(manifest, changed, '-binary', '-noverify')).toThrow();
  });

  it.each([
    ['RSA 2048', []],
    [
      'RSA 3072 with keyEncipherment',
      ['-newkey', 'rsa:3072', '-addext', 'keyUsage=critical,keyEncipherment'],
    ],
  ])('--encrypt-to %s: signed first, then encrypted, opened by openssl', async (_name, flags) => {
    const { certificate: to, key } = createRecipient(...flags);
    const dsarFile = await exportTo('e.zip.p7m', `--visitor=${VISITOR}`, '--encrypt-to', to);
    expect(dsarFile.encrypted).toBe(true);
    const bytes = readFileSync(dsarFile.file);
    expect(hash(bytes)).toBe(dsarFile.sha256);
    for (const plain of ['PK\u0003\u0004', 'export.json', VISITOR]) expect(bytes.includes(plain)).toBe(false);
    const decrypt = (by: string, privateKey: string, out = join(tempDir('opened'), 'e.zip')): string => {
      const from = ['-inform', 'DER', '-in', dsarFile.file, '-recip', by, '-inkey', privateKey, '-out', out];
      run('openssl', ['cms', '-decrypt', ...from]);
      return out;
    };
    const opened = unpack(decrypt(to, key));
    const inside = [join(opened, 'manifest.json'), join(opened, 'manifest.p7s')] as const;
    verify(...inside, '-binary', '-CAfile', certificate);
    expect(exported(opened).decisions).toHaveLength(5);
    const other = createRecipient();
    expect(() => decrypt(other.certificate, other.key)).toThrow();
  });

  it('is by the same identity after the master key was changed, and the key stands in the clear nowhere', async () => {
    const ran = await subject.cli('keys', 'rewrap', '--yes', '--json');
    expect(ran).toMatchObject({ code: 0 });
    const dsarFile = await exportTo('rewrapped.zip', `--visitor=${VISITOR}`);
    const opened = unpack(dsarFile.file);
    verify(join(opened, 'manifest.json'), join(opened, 'manifest.p7s'), '-binary', '-CAfile', certificate);
    const dump = JSON.stringify((await dumpDatabase(subject.dataDir))['meta']);
    expect(dump).toContain('BEGIN CERTIFICATE');
    expect(dump).not.toContain('PRIVATE KEY');
  });
});
