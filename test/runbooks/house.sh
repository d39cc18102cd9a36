# A machine with gpd installed as docs/operate/install.md says, in a mount namespace of its own: nothing of it outlives the shell.
# Stands in for systemd, which a test has not: `systemctl` starts and stops what the unit would.
# Wants: SCRATCH (an empty directory), PROJECT (the built project), PORT; ORIGIN (a repository to install from) or nothing.
set -euo pipefail
mount --make-rprivate /
mkdir -p "$SCRATCH"/{etc,bin,project}
# The project may lie in a folder that is hidden below.
mount --bind "$PROJECT" "$SCRATCH/project"
PROJECT=$SCRATCH/project
cp -a /etc/. "$SCRATCH/etc/"
mount --bind "$SCRATCH/etc" /etc
# npm's own settings are the machine's.
[ ! -f /root/.npmrc ] || cp /root/.npmrc "$SCRATCH/npmrc"
for directory in /root /usr/local/sbin /var/lib; do
  mount -t tmpfs -o mode=0755 tmpfs "$directory"
done
[ ! -f "$SCRATCH/npmrc" ] || cp "$SCRATCH/npmrc" /root/.npmrc
mkdir -p "$SCRATCH/opt" /var/lib/gpd /etc/systemd/system
chmod 0755 "$SCRATCH/opt"
mount --bind "$SCRATCH/opt" /opt
if [ -n "${ORIGIN:-}" ]; then
  git clone --quiet "$ORIGIN" /opt/gpd
  # What `npm run build && npm prune --omit=dev` leaves, without the minutes that it takes.
  node "$PROJECT/packaging/tree.mjs" "$SCRATCH/tree"
  cp -a "$SCRATCH/tree"/{node_modules,dist} /opt/gpd/
else
  mkdir /opt/gpd
  mount --bind "$PROJECT" /opt/gpd
fi
mount -t tmpfs -o "size=${DATA_SIZE:-420m}" tmpfs /var/lib/gpd

cat > "$SCRATCH/bin/systemctl" <<'END'
#!/bin/bash
log=/var/lib/gpd.log pid=/var/lib/gpd.pid
case "$1" in
  start)
    cd /etc/gpd || exit 1
    if [ "$2" != gpd ]; then
      # A unit that runs once: its command, as its user.
      install -d -m 0700 -o gpd -g gpd /var/lib/gpd/backups
      sed -n 's/^ExecStart=//p' "/etc/systemd/system/$2.service" | xargs -r runuser -u gpd -- || exit 1
      exit 0
    fi
    # What LoadCredential= does: a copy that the service may read, in a directory of its own.
    credential=$(sed -n 's/^LoadCredential=master-key://p' /etc/systemd/system/gpd.service.d/*.conf 2> /dev/null | tail -n 1)
    rm -rf /var/lib/gpd.credentials
    if [ -n "$credential" ]; then
      install -d -m 0500 -o gpd /var/lib/gpd.credentials
      install -m 0400 -o gpd "$credential" /var/lib/gpd.credentials/master-key
      export CREDENTIALS_DIRECTORY=/var/lib/gpd.credentials
    fi
    setsid runuser -u gpd -- node /opt/gpd/bin/gpd serve >> "$log" 2>&1 < /dev/null &
    for _ in $(seq 300); do
      curl -fs "http://127.0.0.1:$PORT/readyz" > /dev/null && break
      sleep 0.1
    done
    pgrep --newest -u gpd -f 'gpd serve' > "$pid" ;;
  stop)
    [ -f "$pid" ] || exit 0
    kill -TERM "$(cat "$pid")"
    for _ in $(seq 200); do kill -0 "$(cat "$pid")" 2> /dev/null || break; sleep 0.1; done
    rm -f "$pid" ;;
  is-active) kill -0 "$(cat "$pid")" && echo active ;;
  daemon-reload | enable) ;;
  *) echo "systemctl $1 is not played here" >&2; exit 1 ;;
esac
END
chmod 0755 "$SCRATCH/bin/systemctl"
export PATH="$SCRATCH/bin:$PATH" PORT

useradd --system --home-dir /var/lib/gpd --shell /usr/sbin/nologin gpd
install -d -m 0700 -o gpd -g gpd /var/lib/gpd
chown gpd:gpd /var/lib/gpd && chmod 0700 /var/lib/gpd
install -m 0644 /opt/gpd/systemd/gpd.service /opt/gpd/systemd/gpd-*.{service,timer} /etc/systemd/system/
install -d /etc/gpd && cd /etc/gpd
cat > gpd.toml <<END
data_dir = "/var/lib/gpd"
base_url = "https://id.shop.example"
trusted_proxies = ["127.0.0.1"]
port = $PORT
END
runuser -u gpd -- node /opt/gpd/bin/gpd init --tenant shop --origin https://shop.example \
  --controller 'Shop Ltd, 1 High Street, Dublin' --contact privacy@shop.example
trap 'systemctl stop gpd 2> /dev/null || true' EXIT
systemctl start gpd
cd /

# visit KID: a browser comes by; prints the answer.
visit() {
  cat > /root/visit.json <<'END'
{ "v": 1, "consent": { "purposes": ["device-identification"], "gpc": false, "version": 1, "issuedAt": 1763629990000 },
  "signals": { "screen": { "width": 1920, "height": 1080 }, "media": { "colorGamut": "srgb", "hdr": false },
    "graphics": { "renderer": "ANGLE (Intel, Mesa Intel(R) UHD Graphics 620, OpenGL 4.6)" },
    "page": { "hardwareConcurrency": 8, "webdriver": true } } }
END
  gpd seal "$1" < /root/visit.json |
    curl -sS -H 'content-type: application/json' --data-binary @- "http://127.0.0.1:$PORT/_fp/i/v1"
}
# member NAME: its text in the JSON on standard input.
member() { grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d'"' -f4; }
# sql STATEMENT: into the database, as nobody should.
sql() {
  node -e 'const { Database } = require("/opt/gpd/node_modules/sqlite3");
    new Database("/var/lib/gpd/gpd.db").run(process.argv[1], (error) => process.exit(error ? 1 : 0))' "$1"
}
