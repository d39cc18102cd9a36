#!/bin/sh
# Builds the portable archive from the result of `npm run build`: the tree of the Debian package and a Node, for Linux on x64.
# The same commit gives the same bytes.
# usage: npm run package:archive -- [--out FOLDER] [--version VERSION]
# needs: binutils, tar, and npm's registry for Node
set -eu
cd "$(dirname "$0")/.."
usage='npm run package:archive -- [--out FOLDER] [--version VERSION]'
needs='strip=binutils tar=tar'
. packaging/stage.sh
case $(uname -sm) in
  'Linux x86_64') ;;
  *) echo "gpd: the archive is built on Linux x86_64, and this is $(uname -sm)" >&2 && exit 1 ;;
esac

put_program gpd/lib/gpd
put 755 packaging/archive/gpd gpd/bin/gpd
node packaging/node.mjs 24 "$scratch/node"
put 755 "$scratch/node/node" gpd/bin/node
put 644 "$scratch/node/LICENSE" gpd/share/doc/gpd/LICENSE.node
put 644 LICENSE gpd/LICENSE
put_pages gpd/share/doc/gpd
set_times

mkdir -p "$out"
file=$(cd "$out" && pwd)/gpd-$version-linux-x64.tar.gz
# A minimal system has gzip and no xz, which would take twice as long to unpack a file that is a third smaller.
tar -C "$stage" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=go-w -cf - gpd | gzip -n >"$file"
echo "$file"
