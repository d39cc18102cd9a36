# Read by deb.sh and archive.sh: both contain the same tree and the same pages, with times of SOURCE_DATE_EPOCH (else the commit's).
# The caller sets `usage`, and `stage` to the folder that becomes the package.
umask 022
export LC_ALL=C
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

# put MODE SOURCE TARGET: the umask of the person who cloned must not be seen in the package.
put() { install -D -m "$1" "$2" "$stage/$3"; }

# put_program FOLDER: what runs, with the one native module as small as it gets. Its build id stays: without it strip drops RELRO.
put_program() {
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

# put_units FOLDER PROGRAM PAGES: the units, with the places of this package instead of a clone's.
put_units() {
  for unit in systemd/*; do
    put 644 "$unit" "$1/${unit##*/}"
  done
  sed -i "s,file:///opt/gpd/docs/,file://$3/,; s,/opt/gpd/,$2/,g" "$stage/$1"/*
}

set_times() { find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }
