# A machine with gpd installed as docs/operate.md says, in a mount namespace of its own: nothing of it outlives the shell.
# Stands in for systemd, which a test has not: `systemctl` starts and stops what the unit would.
# Wants: SCRATCH (an empty directory), PROJECT (the built project), PORT.
set -euo pipefail
mount --make-rprivate /
mkdir -p "$SCRATCH"/{etc,bin}
cp -a /etc/. "$SCRATCH/etc/"
mount --bind "$SCRATCH/etc" /etc
for directory in /opt /root /usr/local/sbin /var/lib; do
  mount -t tmpfs -o mode=0755 tmpfs "$directory"
done
mkdir -p /opt/gpd /var/lib/gpd /etc/systemd/system
mount --bind "$PROJECT" /opt/gpd
mount -t tmpfs -o "size=${DATA_SIZE:-420m}" tmpfs /var/lib/gpd

cat > "$SCRATCH/bin/systemctl" <<'END'
#!/bin/bash
log=/var/lib/gpd.log pid=/var/lib/gpd.pid
case "$1" in
  start)
    cd /etc/gpd || exit 1
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
install -d /etc/gpd && cd /etc/gpd
cat > gpd.toml <<END
data_dir = "/var/lib/gpd"
base_url = "https://id.shop.example"
trusted_proxies = ["127.0.0.1"]
port = $PORT
END
runuser -u gpd -- node /opt/gpd/bin/gpd init --tenant shop --origin https://shop.example
trap 'systemctl stop gpd 2> /dev/null || true' EXIT
systemctl start gpd
cd /
