/** What the one line of a command's help cannot say. test/cli/man.test.ts holds every example against the commands that there are. */

interface Note {
  readonly text: string;
  readonly examples: readonly string[];
  /** Other commands, by name. */
  readonly see?: readonly string[];
}

export const NOTES: Readonly<Record<string, Note>> = {
  demo: {
    text: 'Starts a server with a tenant, a local OpenID Connect provider, a shop page with banner and agent, and the console, and prints their addresses. Ctrl-C ends it and removes its directory.',
    examples: ['gpd demo --port 0'],
    see: ['init'],
  },
  init: {
    text: 'It refuses to overwrite anything. Set `base_url` first: the log of a tenant is named after its host for good. Keep a copy of the master key away from this machine: without it nothing that is stored opens again.',
    examples: ['gpd init --tenant shop --origin https://shop.example'],
    see: ['serve', 'tenants', 'tls'],
  },
  serve: {
    text: 'Pending migrations are applied first, all or none; a data directory without a database is refused. SIGTERM drains for at most ten seconds and ends with 0. Logs are JSON lines on standard error: codes, counts and request ids, no signal, token or visitor id.',
    examples: ['gpd serve --port 8080', 'gpd serve --config /etc/gpd/gpd.toml'],
    see: ['doctor', 'status', 'top'],
  },
  witness: {
    text: 'A witness is a server of someone else that cosigns the checkpoints of a log (C2SP tlog-witness), and only such as extend what it cosigned before. `GPD_WITNESSES` names those that are asked.',
    examples: ['gpd witness status'],
    see: ['consent', 'doctor'],
  },
  tenants: {
    text: 'A tenant is a customer, named by its kid. A new one has one published seal key and the purpose `device-identification`. `remove` is an offboarding: everything of the tenant goes, its keys last, and a record of the removal stays.',
    examples: [
      'gpd tenants add blog --origin https://blog.example',
      'gpd tenants set shop retention.days=30',
      'gpd tenants remove blog --export /var/lib/gpd/blog --dry-run',
    ],
    see: ['keys', 'apikeys'],
  },
  policy: {
    text: '`propose` reads the stored decisions of a tenant with their outcomes and rulings, and prints which weights they suggest and how many decisions would get another class. The arithmetic is in docs/classification.md. In `--json`, `policy` is the whole policy as `gpd tenants policy --set` takes it.',
    examples: ['gpd policy propose shop'],
    see: ['tenants', 'replay'],
  },
  keys: {
    text: 'Generations go from staged to published, retiring and destroyed. What was sealed to a retiring one opens until its grace ends; then its private key is overwritten. `rewrap` changes the master key in one transaction; backups made before still need the old one.',
    examples: ['gpd keys rotate shop --grace 7d', 'gpd keys list', 'gpd keys rewrap --dry-run'],
    see: ['tenants', 'backup'],
  },
  'master-key': {
    text: 'On paper, where no backup and no thief of disks reaches it. `escrow` prints it in groups with a checksum, `confirm` reads them back from the paper, `recover` writes the file again and names a group that is wrong. Whoever has the paper has the key.',
    examples: ['gpd master-key escrow', 'gpd master-key confirm'],
    see: ['keys', 'backup'],
  },
  apikeys: {
    text: 'A key is stored as a hash and printed once. A running server refuses a revoked one within five seconds.',
    examples: ['gpd apikeys create shop --scope secret --name backend', 'gpd apikeys list shop'],
    see: ['consent'],
  },
  agents: {
    text: 'A directory is fetched by https, from public addresses only, in the background and never for a request. `--jwks` pins the keys instead.',
    examples: [
      'gpd agents add https://agent.example',
      'gpd agents list',
      'gpd agents remove https://agent.example',
    ],
    see: ['serve'],
  },
  consent: {
    text: 'Does by hand what the consent API does, on the same ledger. `verify` recomputes a whole log from the database and exits 1 when anything does not fit.',
    examples: [
      'gpd consent check shop u-1 device-identification',
      'gpd consent withdraw shop u-1 device-identification',
      'gpd consent verify shop',
    ],
    see: ['apikeys', 'audit'],
  },
  contests: {
    text: 'A contest is due one calendar month after it was filed, or by what the tenant’s `rights.profile` says; `extend` moves that date once. `overturned` writes an override that later verdicts honour; the same outcome again changes nothing, another one ends with 7. The reason is read by the person who contested.',
    examples: ['gpd contests list', 'gpd contests list --tenant shop --all'],
    see: ['audit', 'dsar'],
  },
  audit: {
    text: 'Rows name people by keyed references only, and are sealed into the tenant’s log by the hour.',
    examples: ['gpd audit shop --limit 20'],
    see: ['consent', 'erase'],
  },
  erase: {
    text: 'Prints a receipt, scope by scope, and looks for every deleted id in the files of the data directory. Exit status 5 says that something is left, for instance because another program reads the database; the server finishes it by itself, and `erase resume` at once.',
    examples: [
      'gpd erase --tenant shop --principal u-1 --dry-run',
      'gpd erase list shop',
      'gpd erase resume',
    ],
    see: ['dsar', 'retention'],
  },
  retention: {
    text: 'The server does it every hour; the command is for nodes that are stopped at night, and for a look.',
    examples: ['gpd retention run'],
    see: ['erase', 'tenants'],
  },
  dsar: {
    text: 'The archive is a ZIP of a page, JSON, CSV and a codebook, with a manifest and its detached CMS signature, which `openssl cms -verify` checks.',
    examples: ['gpd dsar export --tenant shop --principal u-1 --out /var/lib/gpd/u-1.zip'],
    see: ['erase', 'audit'],
  },
  seal: {
    text: 'For curl and for tests: a plaintext comes in on standard input, a sealed bundle goes out. A missing nonce and time are filled in.',
    examples: [
      'gpd seal shop < plaintext.json',
      'gpd seal shop --url https://id.shop.example < plaintext.json',
    ],
    see: ['replay'],
  },
  replay: {
    text: 'Each line is a bundle, or an object with `bundle`, `headers` and `expect`. Offline, every bundle is opened and classified at its own time and nothing is written. Exit status 1: a line differs from its `expect`.',
    examples: ['gpd replay bundles.ndjson', 'gpd replay bundles.ndjson --policy policy.json'],
    see: ['seal', 'tenants'],
  },
  webhooks: {
    text: 'Deliveries are signed as Standard Webhooks has it and tried again for about 18 hours; then `replay` sends them again. Targets have public addresses unless `--allow-private` says otherwise.',
    examples: ['gpd webhooks add shop https://shop.example/hooks', 'gpd webhooks list shop'],
    see: ['tenants'],
  },
  tls: {
    text: 'For https without a proxy. `init` makes a private CA and a certificate, for a test inside the house; `csr` a key and a request for a CA of your choice. Private keys are 0600, and nothing is overwritten.',
    examples: ['gpd tls init --host id.shop.example', 'gpd tls csr --host id.shop.example'],
    see: ['serve'],
  },
  migrate: {
    text: 'There is no way back to an older gpd on a migrated database: back it up first.',
    examples: ['gpd migrate --dry-run'],
    see: ['backup', 'serve'],
  },
  backup: {
    text: 'The file is encrypted under a key derived from the master key, read back and compared before it gets its name, and never written over another. It is worth nothing without the master key, nor that without it: keep them apart. On PostgreSQL use pg_dump.',
    examples: ['gpd backup /var/lib/gpd/backups/today.backup'],
    see: ['restore', 'keys'],
  },
  restore: {
    text: 'No server may run on the data. The file is verified whole before anything is touched, and the old database stays aside until the new one has opened. Erasures that came after the backup are repeated before the server listens; withdrawals and contests that came after are lost.',
    examples: [
      'gpd restore /var/lib/gpd/backups/today.backup --dry-run',
      'gpd restore /var/lib/gpd/backups/today.backup --yes',
    ],
    see: ['backup', 'doctor'],
  },
  doctor: {
    text: 'Looks at the machine, the data directory, the master key, the database, TLS and proxies, the identity provider, tenants, keys, logs, agents, webhooks and jobs. Each check is `pass`, `warn`, `fail` or `skipped`, with what to do in one sentence. Exit status 1: something fails.',
    examples: ['gpd doctor', 'gpd doctor --all --json'],
    see: ['status'],
  },
  status: {
    text: 'It exits with 0 whatever it finds; `gpd doctor` judges.',
    examples: ['gpd status --json'],
    see: ['doctor', 'top'],
  },
  top: {
    text: 'Needs the metrics listener of the server, `GPD_METRICS_LISTEN`.',
    examples: ['gpd top', 'gpd top --json'],
    see: ['status'],
  },
  completion: {
    text: 'The Debian package brings the scripts along.',
    examples: ['gpd completion bash > /etc/bash_completion.d/gpd'],
  },
};
