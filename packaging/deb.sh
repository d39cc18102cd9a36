#!/bin/sh
# Builds the Debian package from the result of `npm run build`. The same commit gives the same bytes: all files have the time
# SOURCE_DATE_EPOCH (by default the commit's) and belong to root.
# usage: npm run package:deb -- [--out FOLDER] [--version VERSION]
# needs: dpkg-dev, binutils, help2man
set -eu
cd "$(dirname "$0")/.."
usage='npm run package:deb -- [--out FOLDER] [--version VERSION]'
needs='dpkg-deb=dpkg dpkg-shlibdeps=dpkg-dev strip=binutils help2man=help2man'
. packaging/stage.sh
maintainer="${DEBFULLNAME:-gpd maintainers} <${DEBEMAIL:-maintainers@gpd.dev}>"
architecture=$(dpkg --print-architecture)
doc=$stage/usr/share/doc/gpd

put_program usr/lib/gpd
# Debian has the text of the Apache licence; the file `copyright` refers to it.
rm "$stage/usr/lib/gpd/LICENSE"
put 755 packaging/debian/gpd usr/bin/gpd
put 644 packaging/debian/gpd.toml etc/gpd/gpd.toml
put 644 packaging/debian/lintian-overrides usr/share/lintian/overrides/gpd
put 644 packaging/debian/copyright usr/share/doc/gpd/copyright
put_units usr/lib/systemd/system /usr/lib/gpd /usr/share/doc/gpd
put_pages usr/share/doc/gpd
cat >"$doc/changelog" <<END
gpd ($version) unstable; urgency=medium

  * What is new: NEWS.gz, beside this file.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END

man=$stage/usr/share/man/man1
mkdir -p "$man" "$scratch/help"
node packaging/help.mjs "$scratch/help" >"$scratch/pages"
while IFS='	' read -r page about; do
  help2man --no-info --name="$about" --version-string="$page $version" --include=packaging/debian/gpd.h2m \
    --help-option="$scratch/help/$page" --output="$man/$page.1" cat
done <"$scratch/pages"
gzip -9n "$doc/NEWS" "$doc/changelog" "$man"/*

node bin/gpd completion bash >"$scratch/bash"
node bin/gpd completion zsh >"$scratch/zsh"
node bin/gpd completion fish >"$scratch/fish"
put 644 "$scratch/bash" usr/share/bash-completion/completions/gpd
put 644 "$scratch/zsh" usr/share/zsh/vendor-completions/_gpd
put 644 "$scratch/fish" usr/share/fish/vendor_completions.d/gpd.fish

# The packages of this distribution with the libraries that the native module needs.
mkdir "$scratch/debian"
printf 'Source: gpd\n\nPackage: gpd\nArchitecture: any\n' >"$scratch/debian/control"
libraries=$(cd "$scratch" && dpkg-shlibdeps --warnings=0 -O "$native" | sed 's/^shlibs:Depends=//')
size=$(find "$stage" -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
mkdir "$stage/DEBIAN"
(cd "$stage" && find usr -type f | sort | xargs -d '\n' md5sum) >"$stage/DEBIAN/md5sums"
echo /etc/gpd/gpd.toml >"$stage/DEBIAN/conffiles"
for script in preinst postinst prerm postrm; do
  put 755 "packaging/debian/$script" "DEBIAN/$script"
done
sed -i "s/@NODE@/$wanted/g" "$stage/DEBIAN/preinst"
cat >"$stage/DEBIAN/control" <<END
Package: gpd
Version: $version
Section: web
Priority: optional
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $size
Depends: $libraries, nodejs (>= $wanted), adduser
Recommends: ca-certificates
Suggests: nginx | caddy, postgresql-client
Description: device identification with consent that can be proven
 gpd recognises devices and tells people from automation, on your own machine
 and only with consent. A consent ledger beside it answers whether a processing
 is allowed, with a proof that public tools verify.
END

set_times
mkdir -p "$out"
file=$(cd "$out" && pwd)/gpd_${version}_$architecture.deb
DPKG_DEB_THREADS_MAX=1 dpkg-deb --root-owner-group -Zxz --build "$stage" "$file" >&2
echo "$file"
