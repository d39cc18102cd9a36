# usage: layer.sh COMMAND…: runs it as root of this machine under a layer of its own; what it writes goes with it.
# Wants a mount and a PID namespace of its own (unshare), and PROJECT.
set -euo pipefail
mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root
mount --rbind /dev /mnt/root/dev
mount --rbind /sys /mnt/root/sys
mount -t proc proc /mnt/root/proc
mount -t tmpfs -o mode=0755 tmpfs /mnt/root/run
mount -t tmpfs -o mode=1777 tmpfs /mnt/root/tmp
# The project may lie where the layer has just put an empty folder.
[ -e "/mnt/root$PROJECT" ] || { mkdir -p "/mnt/root$PROJECT" && mount --bind "$PROJECT" "/mnt/root$PROJECT"; }
# What was written can be looked at from inside.
mkdir /mnt/root/run/upper
mount --bind /mnt/upper /mnt/root/run/upper
# Node may lie elsewhere on this machine; the package's place for it is /usr/bin.
[ -x /usr/bin/node ] || ln -s "$(command -v node)" /mnt/root/usr/bin/node
exec chroot /mnt/root "$@"
