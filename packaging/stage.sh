# Sourced by deb.sh and archive.sh, which both package the same tree and pages. All files get the time SOURCE_DATE_EPOCH (by default
# the commit's). The caller sets `usage` and `needs`, tools with their Debian packages; `stage` is the folder that becomes the package.
umask 022
export LC_ALL=C
missing='' packages=''
for pair in $needs; do
  command -v "${pair%=*}" >/dev/null 2>&1 && continue
  missing="$missing ${pair%=*}"
  case " $packages " in *" ${pair#*=} "*) ;; *) packages="$packages ${pair#*=}" ;; esac
done
if [ -n "$missing" ]; then
  echo "gpd: this package is built with$missing, which this machine lacks: apt-get install$packages" >&2
  exit 1
fi
[ -f dist/cli/main.js ] || { echo 'gpd: dist/cli/main.js is missing: npm run build' >&2 && exit 1; }
field() { node -p "require('./package.json').$1"; }
out=dist version=$(field version) wanted=$(field engines.node | sed 's/^>=//; s/\.0$//')
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2 ;;
    --version) version=$2 ;;
    *) echo "usage: $usage" >&2 && exit 2 ;;
  esac
  shift 2
done
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
stage=$scratch/stage

# put MODE SOURCE TARGET: sets the mode explicitly, so that the package does not depend on the umask of the clone.
put() { install -D -m "$1" "$2" "$stage/$3"; }

# put_program FOLDER: copies the tree and strips the native module. Its build id stays, because without it strip drops RELRO.
put_program() {
  # A clone that ran the demo may have the quick module.
  node bin/native.mjs
  node packaging/tree.mjs "$stage/$1"
  native=$stage/$1/node_modules/sqlite3/build/Release/node_sqlite3.node
  strip --strip-unneeded --remove-section=.comment "$native"
}

# put_pages FOLDER
put_pages() {
  (cd docs && find . -path ./images -prune -o \( -name '*.md' -o -name '*.json' -o -name '*.yml' -o -name '*.conf' -o -name '*.py' -o -name Caddyfile \) -print) |
    while read -r name; do
      put 644 "docs/$name" "$1/$name"
    done
  put 644 CHANGELOG.md "$1/NEWS"
}

# put_units FOLDER PROGRAM PAGES: copies the systemd units, with the paths of this package instead of those of a clone.
put_units() {
  for unit in systemd/*; do
    put 644 "$unit" "$1/${unit##*/}"
  done
  sed -i "s,file:///opt/gpd/docs/,file://$3/,; s,/opt/gpd/,$2/,g" "$stage/$1"/*
}

set_times() { find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }
