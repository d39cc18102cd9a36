# A machine's life with the package: installed, used, upgraded, removed, installed again, purged. Run by deb.test.ts in a layer.
# Wants: DEB, NEWER, PORT.
set -euo pipefail
say() { echo "== $*"; }
fails() { ! "$@" || { echo "it should have failed: $*"; exit 90; }; }

# systemd does not run here: what the package's scripts would have it do is written down.
mkdir -p /run/systemd/system
rm -f /usr/sbin/policy-rc.d
cat > /usr/local/bin/systemctl <<'END'
#!/bin/sh
echo "$*" >> /run/systemctl.log
END
chmod 0755 /usr/local/bin/systemctl
calls() { cat /run/systemctl.log 2>/dev/null || true; : > /run/systemctl.log; }

# Node need not be a Debian package on a CI; then, and only then, is the one dependency passed over.
force=
dpkg --compare-versions "$(dpkg-query -W -f '${Version}' nodejs 2>/dev/null || echo 0)" ge 20.19 || {
  force=--force-depends
  say "nodejs is no package here: --force-depends"
}

say install
dpkg $force -i "$DEB"
calls > /run/at-install
fails grep -qE 'start|enable' /run/at-install
test "$(stat -c %U:%G:%a /var/lib/gpd)" = gpd:gpd:700
dpkg --verify gpd
for unit in gpd.service gpd@.service gpd-{retention,backup,doctor}.{service,timer}; do
  test -f "/usr/lib/systemd/system/$unit"
done
say verify
for unit in /usr/lib/systemd/system/gpd*; do
  # A template is judged as one of its instances: the port of an address comes from there.
  name=${unit##*/}
  systemd-analyze verify "${name/@./@8081.}"
done
fails grep -rn /opt/gpd /usr/lib/systemd/system/gpd.service
man --path gpd gpd-serve gpd-tenants-add > /dev/null || test -f /usr/share/man/man1/gpd-tenants-add.1.gz
bash -c '. /usr/share/bash-completion/completions/gpd && complete -p gpd'

say "before init"
fails gpd doctor
{ gpd doctor || true; } | grep -F 'Run gpd init'
fails gpd serve 2> /run/refused
grep -F 'gpd init --tenant KID' /run/refused

say init
cd /root
gpd init --tenant shop --origin https://shop.example --controller 'Shop Ltd, Dublin' --contact privacy@shop.example >/run/init
grep -F 'Next: systemctl enable --now gpd' /run/init
test "$(stat -c %U:%a /var/lib/gpd/gpd.db)" = gpd:600
test "$(stat -c %U:%a /var/lib/gpd/master.key)" = gpd:600
sed -i "1a port = $PORT" /etc/gpd/gpd.toml
printf 'GPD_LOG_LEVEL=warn\nGPD_SMTP_FROM=Privacy & Co <privacy@shop.example>\n' > /etc/gpd/gpd.env
chmod 0600 /etc/gpd/gpd.env

say doctor
gpd doctor --all --json > /run/doctor.json
node -e '
  const { checks, counts } = JSON.parse(require("fs").readFileSync("/run/doctor.json", "utf8"));
  console.log(`${checks.length} checks, ${counts.fail} fail`);
  process.exit(counts.fail === 0 && checks.length > 40 ? 0 : 1);'
say "another user sees nothing of it"
fails setpriv --reuid=nobody --clear-groups -- gpd tenants list --config /etc/gpd/gpd.toml

say serve
serve() {
  gpd serve > /run/serve.log 2>&1 &
  server=$!
  for _ in $(seq 200); do
    curl -fs "http://127.0.0.1:$PORT/readyz" > /dev/null && return
    sleep 0.1
  done
  cat /run/serve.log
  return 1
}
serve
test "$(stat -c %U "/proc/$server")" = gpd
curl -fsS "http://127.0.0.1:$PORT/healthz"
echo
for page in /v1/agent.js /v1/embed.js /openapi.json /docs /console; do
  echo "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$PORT$page") $page"
done
printf '%s' '{"v":1,"consent":{"purposes":["device-identification"],"gpc":false,"version":1,"issuedAt":1763629990000},"signals":{}}' |
  gpd seal shop | curl -fsS -H 'content-type: application/json' --data-binary @- "http://127.0.0.1:$PORT/_fp/i/v1" | grep -o '"reason":"ok"'
gpd backup /var/lib/gpd/today.backup
kill -TERM "$server"
wait "$server"
say "served and ended with 0"

say "the master key as a credential"
install -m 0600 -o root -g root /var/lib/gpd/master.key /etc/gpd/master-key
mv /var/lib/gpd/master.key /run/master.key
mkdir -p /etc/systemd/system/gpd.service.d
printf '[Service]\nLoadCredential=master-key:/etc/gpd/master-key\n' > /etc/systemd/system/gpd.service.d/master-key.conf
systemd-analyze verify gpd.service
gpd tenants list
gpd backup /var/lib/gpd/held.backup
gpd doctor --all | grep -F 'held by the unit (/etc/gpd/master-key)'
# As the units of the night do with their line: the commented one, as it is shipped.
install -d -m 0500 -o gpd /run/credentials-of-night
install -m 0400 -o gpd /etc/gpd/master-key /run/credentials-of-night/master-key
install -d -m 0700 -o gpd -g gpd /var/lib/gpd/backups
for unit in retention backup doctor; do
  grep -qx '#LoadCredential=master-key:/etc/gpd/master-key' /usr/lib/systemd/system/gpd-$unit.service
  sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/gpd-$unit.service
done > /run/night
test "$(wc -l < /run/night)" = 4
while read -r command; do
  setpriv --reuid=gpd --regid=gpd --init-groups -- env CREDENTIALS_DIRECTORY=/run/credentials-of-night \
    GPD_DATA_DIR=/var/lib/gpd $command < /dev/null
done < /run/night
test "$(stat -c %U:%a /var/lib/gpd/backups/gpd-*.backup)" = gpd:600
grep -F '"fail":0' /var/lib/gpd/last-doctor
code=0
setpriv --reuid=gpd --regid=gpd --init-groups -- gpd tenants list --config /etc/gpd/gpd.toml 2> /run/not-root || code=$?
test "$code" = 78
grep -F 'held by the unit' /run/not-root
fails grep -F 'gpd init' /run/not-root
# Another place, that the unit alone names; and the place that is tried where no unit names one.
mv /etc/gpd/master-key /etc/gpd/elsewhere
sed -i s,/etc/gpd/master-key,/etc/gpd/elsewhere, /etc/systemd/system/gpd.service.d/master-key.conf
gpd tenants list
mv /etc/gpd/elsewhere /etc/gpd/master-key
rm -r /etc/systemd/system/gpd.service.d
gpd tenants list
mv /run/master.key /var/lib/gpd/master.key
rm /etc/gpd/master-key

say upgrade
dpkg $force -i "$NEWER"
calls > /run/at-upgrade
grep -F 'try-restart' /run/at-upgrade
fails grep -F -e ' stop' -e 'stop ' /run/at-upgrade
grep -F "port = $PORT" /etc/gpd/gpd.toml
test "$(gpd tenants list --json | grep -c '"kid":"shop"')" = 1
serve
kill -TERM "$server"
wait "$server"

say "without Node, and with an old one"
dpkg-deb -e "$DEB" /run/control
mount --bind /dev/null /usr/bin/node
fails gpd status 2> /run/no-node
grep -F 'install the package nodejs, 20.19 or newer' /run/no-node
sh /run/control/preinst install 2>&1 | grep -F 'this is not there'
umount /usr/bin/node
printf '#!/bin/sh\necho v18.19.0\n' > /usr/local/old-node
chmod 0755 /usr/local/old-node
mount --bind /usr/local/old-node /usr/bin/node
sh /run/control/preinst install 2>&1 | grep -F 'needs Node 20.19 or newer as /usr/bin/node, and this is 18.19.0'
umount /usr/bin/node
test -z "$(sh /run/control/preinst install 2>&1)"

say remove
dpkg -r gpd
calls | grep -F 'stop gpd-*.timer'
test ! -e /usr/lib/gpd
test ! -e /usr/bin/gpd
grep -F "port = $PORT" /etc/gpd/gpd.toml
test -f /var/lib/gpd/gpd.db
id gpd

say "install again"
dpkg $force -i "$DEB"
grep -F "port = $PORT" /etc/gpd/gpd.toml
test "$(gpd tenants list --json | grep -c '"kid":"shop"')" = 1

say purge
mkdir -p /etc/systemd/system/{multi-user,timers}.target.wants /var/lib/systemd/timers
ln -s /usr/lib/systemd/system/gpd.service /etc/systemd/system/multi-user.target.wants/gpd.service
for timer in gpd-{retention,backup,doctor}.timer; do
  ln -s "/usr/lib/systemd/system/$timer" "/etc/systemd/system/timers.target.wants/$timer"
  touch "/var/lib/systemd/timers/stamp-$timer"
done
dpkg -P gpd 2>&1 | tee /run/purge.log
grep -F '/var/lib/gpd stays' /run/purge.log
grep -F 'gpd.env stays' /run/purge.log
test -z "$(find /etc/systemd/system /usr/lib/systemd/system /var/lib/systemd -name '*gpd*')"
test ! -e /etc/gpd/gpd.toml
test -f /var/lib/gpd/gpd.db
test -f /var/lib/gpd/master.key
id gpd
say "what it said to do"
rm -rf /var/lib/gpd && deluser --system gpd
rm -r /etc/gpd

say "purged without data nothing is left"
dpkg $force -i "$DEB" > /dev/null
dpkg -P gpd
fails id gpd
test ! -e /var/lib/gpd
test ! -e /etc/gpd
fails dpkg -s gpd
find /run/upper -name '*gpd*' -not -path '*/var/log/*' -not -path '*/tmp/*' -not -type c | tee /run/left
test ! -s /run/left
say followed
