#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a bundle of tools/bundle in a root that has Debian's smallest set of packages, Python and a torch wheel, without
# network and GPU, and compares weights with those that the same program trains outside.
#
#   tests/bundle/bare_root.sh BUNDLE.tar.gz SITE-PACKAGES ROOT
#
# SITE-PACKAGES is the folder of the wheel that the bundle was built with. ROOT is made by debootstrap if it is not there
# (350 MB, from DEBIAN_MIRROR if that is set), and kept. Needs root. What is mounted is mounted in a namespace of its own
# and is gone afterwards.
set -euo pipefail
[ $# = 3 ] || { sed -n '6,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
bundle=$(realpath "$1") site=$(realpath "$2") root=$(realpath -m "$3")
[ "$(id -u)" = 0 ] || { echo "bare_root.sh: needs root, for chroot and mounts" >&2; exit 1; }
[ -d "$site/torch/lib" ] || { echo "bare_root.sh: $site has no torch" >&2; exit 1; }

if [ ! -x "$root/usr/bin/python3" ]; then
  debootstrap --variant=minbase --include=python3-minimal,libpython3-stdlib bookworm "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
fi

# A Python environment whose only package is the wheel, where the GPU machine has it.
environment=$root/opt/torch/.venv packages=$root/opt/torch/.venv/lib/python3.11/site-packages
mkdir -p "$environment/bin" "$packages"
ln -sfn /usr/bin/python3 "$environment/bin/python"
printf 'home = /usr/bin\n' >"$environment/pyvenv.cfg"

work=$root/work
rm -rf "$work"
mkdir -p "$work"
tar -xzf "$bundle" -C "$work"
cp "$here/in_bare_root.sh" "$work/"

echo "== Outside"
outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
tar -xzf "$bundle" -C "$outside"
(cd "$outside" && Torch_DIR=$site/torch pipewright-bundle/run pipewright run pipewright-bundle/experiments/quickstart.yaml \
  --point "spectrain v1 stages 4 seed 1" --out trained --quiet)
expected=$(sha256sum <"$outside/trained/final.safetensors")

echo "== In the bare root"
# shellcheck disable=SC2016
unshare --mount --net --pid --fork bash -euc '
  mount --bind -o ro "$1" "$2"
  mount -t proc proc "$3/proc"
  exec chroot "$3" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 bash /work/in_bare_root.sh' \
  bare_root "$site" "$packages" "$root"

trained=$(sha256sum <"$work/trained/final.safetensors")
[ "$trained" = "$expected" ] || { echo "bare_root.sh: other weights in the bare root than outside" >&2; exit 1; }
echo "== The same weights as outside, SHA-256 ${expected%% *}"
