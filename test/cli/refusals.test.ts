import type { Command } from 'commander';
import { beforeAll, expect, it } from 'vitest';
import { createProgram } from '../../src/cli/gpd.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { createOwn, type Own } from './support/own.ts';

/** Command lines that are refused: the exit code, one sentence that names the word that is wrong, and nothing changed. */

let mine: Own;
beforeAll(async () => {
  mine = await createOwn([
    { kid: KID, origins: [ORIGIN] },
    { kid: 'other', origins: [] },
  ]);
});

const USAGE: readonly (readonly [string, string | RegExp])[] = [
  ['nonsense', "unknown command 'nonsense'"],
  ['kyes list', "unknown command 'kyes' (Did you mean keys?); `gpd --help`"],
  ['keys rotat', "unknown command 'rotat' (Did you mean rotate?); `gpd keys --help`"],
  ['keys rotate --grac 1d', "unknown option '--grac' (Did you mean --grace?); `gpd keys rotate --help`"],
  ['init', "required option '--tenant <kid>' not specified; `gpd init --help`"],
  ['init --tenent x', "unknown option '--tenent' (Did you mean --tenant?); `gpd init --help`"],
  ['tenants list surplus', 'too many arguments'],
  ['tenants add', 'missing argument <kid>; `gpd tenants add --help`'],
  [
    'consent check alice newsletter',
    'missing argument: expected <kid> <principal> <purpose>, got 2; `gpd consent check --help`',
  ],
  ['keys destroy', 'missing argument: expected <kid> <generation>, got none'],
  ['erase --principal alice', `missing option --tenant: name one of ${KID}, other\n`],
  ['dsar export --principal alice --out a.zip', `missing option --tenant: name one of ${KID}, other\n`],
  ['keys rotate', `missing argument <kid>: name one of ${KID}, other\n`],
  ["tenants add 'a|b'", 'tenant "a|b": '],
  ['tenants add ..', /not \. or \.\./],
  [`tenants add ${'k'.repeat(65)}`, 'tenant "kkk'],
  ['tenants add x --origin shop.example', /--origin shop\.example: .*write https:\/\/shop\.example/],
  ['tenants add x --origin https://*.shop.example', /--origin https:\/\/\*\.shop.* wildcard/],
  [`tenants set ${KID}`, 'expected <kid> <key=value...>, got 1'],
  [`tenants set ${KID} retention.day=30`, 'retention.days'],
  [`tenants set ${KID} retention.days`, 'retention.days='],
  [`tenants set ${KID} retention.days=0`, 'retention.days'],
  [`tenants set ${KID} consent.basis=proven`, 'consent.basis'],
  [`tenants set ${KID} ledger.public=yes`, 'ledger.public'],
  [`tenants set ${KID} retention.days=30 nope=1`, 'nope'],
  [`tenants set ${KID} origins=https://a.example,shop.example`, /origins=shop\.example: .*write https:/],
  [`tenants set ${KID} origins=ftp://shop.example`, 'origins=ftp://shop.example: an origin is'],
  [`tenants set ${KID} origins=https://*.shop.example`, /origins=https:\/\/\*\.shop.* wildcard/],
  [`tenants set ${KID} notify.email=nobody`, 'notify.email=nobody: an e-mail address'],
  [`keys rotate ${KID} --grace 1w`, '--grace 1w: must be a duration'],
  [`keys destroy ${KID} 0 --yes`, '0'],
  [`keys destroy ${KID} 1.5 --yes`, '1.5'],
  [`keys destroy ${KID} 1 --grace 1d`, "unknown option '--grace'"],
  [`apikeys create ${KID} --scope admin --name n`, 'admin'],
  [`apikeys create ${KID} --scope secret`, '--name'],
  [`consent purposes set ${KID} Analytics --title t`, 'Analytics'],
  [`consent purposes set ${KID} ads --title t --gpc never`, 'never'],
  [`consent purposes set ${KID} ads --title t --ttl-days 0`, '--ttl-days 0'],
  [`consent purposes set ${KID} ads`, '--title'],
  [`consent grant ${KID} p q --policy-version x`, '--policy-version x: must be'],
  [`audit ${KID} --since soon`, '--since soon: must be a date'],
  [`staff invite a@b.c --role dpo --tenant ${KID}`, 'a name is'],
  [`staff invite Rosa --role admin --tenant ${KID}`, 'admin'],
  ['staff invite Rosa --role dpo', `missing option --tenant: name one of ${KID}, other\n`],
  ['status --url file:///etc/passwd', 'file:///etc/passwd'],
  ['top --url file:///etc/passwd', 'file:///etc/passwd'],
  ['replay - --url nowhere', 'nowhere'],
  ['replay - --concurrency 0 --url http://127.0.0.1:1', '--concurrency 0'],
  [`seal ${KID}`, 'standard input is not JSON'],
  [`seal ${KID} --url http://127.0.0.1:1 --symmetric`, 'omit --url'],
  ['demo --visits 0', '--visits 0: must be a whole number from 1 to 200000'],
  ['demo --visits 200001', '--visits 200001: must be'],
  ['demo --visits 1.5', '--visits 1.5: must be'],
  ['completion constructor', 'constructor'],
];

const NOT_FOUND = [
  'tenants show nobody',
  'tenants set nobody retention.days=30',
  'rights notice nobody',
  'apikeys list nobody',
  'apikeys create nobody --scope secret --name n',
  'apikeys revoke key_none',
  'apikeys rotate key_none',
  'webhooks list nobody',
  'consent policies nobody',
  'consent purposes list nobody',
  'consent purposes set nobody ads --title t',
  `consent purposes remove ${KID} none`,
  'keys list nobody',
  'keys generate nobody',
  'keys rotate nobody',
  'keys rotate nobody --dry-run',
  'keys symmetric nobody',
  'keys destroy nobody 1 --yes',
  `keys destroy ${KID} 9 --yes`,
  'agents remove https://nobody.example --yes',
  'staff invite Rosa --role dpo --tenant nobody',
  'staff remove Rosa --yes',
  'replay none.ndjson',
];

const CONFLICTS = [
  [`tenants add ${KID}`, KID],
  [`keys destroy ${KID} 1 --yes`, 'published'],
  [`consent purposes remove ${KID} device-identification`, 'device-identification'],
] as const;

it.each([
  ...USAGE.map(([line, message]) => [2, line, message] as const),
  ...NOT_FOUND.map((line) => [3, line, /^gpd: ./] as const),
  ...CONFLICTS.map(([line, message]) => [7, line, message] as const),
  [78, 'demo --port 99999', 'gpd: --port 99999: '] as const,
])('%i for gpd %s', async (code, line, message) => {
  const before = await mine.dump();
  const ran = await mine.gpd(line);
  expect(ran).toMatchObject({ code, stdout: '' });
  expect(ran.stderr).toMatch(message);
  expect(ran.stderr.trim()).not.toContain('\n');
  expect(await mine.dump()).toEqual(before);
});

/** Every command that takes arguments, with a word for each of its required options. */
async function commandsWithArguments() {
  const found: { readonly path: string; readonly names: string[]; readonly options: string[] }[] = [];
  const walk = (command: Command, path: string): void => {
    for (const child of command.commands) walk(child, `${path} ${child.name()}`);
    const names = command.registeredArguments.map((argument) => argument.name());
    const options = command.options.filter(({ mandatory }) => mandatory).map((option) => `${option.long} x`);
    if (names.length > 0 && command.commands.length === 0) found.push({ path: path.trim(), names, options });
  };
  walk(await createProgram(), '');
  return found;
}

it('an empty argument of any command is refused by its name', async () => {
  const before = await mine.dump();
  const commands = await commandsWithArguments();
  expect(commands.length).toBeGreaterThan(40);
  expect(commands.map(({ path }) => path)).toContain('contests ask');
  for (const { path, names, options } of commands)
    for (const [at, name] of names.entries()) {
      const words = names.slice(0, at + 1).map((_name, place) => (place === at ? "''" : KID));
      const rest = names.slice(at + 1).map(() => KID);
      const ran = await mine.gpd([path, ...words, ...rest, ...options].join(' '));
      const isNamed = ran.stderr.includes(`argument <${name}> is empty; \`gpd ${path} --help\``);
      expect([path, name, ran.code, isNamed || ran.stderr.startsWith('gpd: tenant "": ')]).toEqual([
        ...[path, name, 2, true],
      ]);
    }
  expect(await mine.dump()).toEqual(before);
});
