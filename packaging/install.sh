#!/bin/sh
# Installs Sprag from a release archive, and only if the archive's checksum is right.
#
#   install.sh ARCHIVE [--sha256 SUM] [--prefix DIR] [--service]
#
# ARCHIVE is a file or an https address. Without --sha256 the sum is taken from the file SHA256SUMS beside the archive, which tells a
# broken download, not a dishonest host: take the sum from somewhere else if you do not trust the host.
#   --prefix DIR   the program goes to DIR/bin [/usr/local]
#   --service      also install the systemd unit; start it with `systemctl enable --now sprag`
set -eu

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

usage() {
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "$0"
}

archive='' sum='' prefix=/usr/local service=no
while [ $# -gt 0 ]; do
    case $1 in
    --sha256 | --prefix)
        [ $# -ge 2 ] || fail "$1 needs a value"
        if [ "$1" = --sha256 ]; then sum=$2; else prefix=$2; fi
        shift
        ;;
    --service) service=yes ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*) fail "unknown option $1; there are --sha256, --prefix and --service" ;;
    *)
        [ -z "$archive" ] || fail "one archive at a time, and there are $archive and $1"
        archive=$1
        ;;
    esac
    shift
done
[ -n "$archive" ] || fail "which archive? Give a file or an https address, such as sprag-0.1.0-x86_64-unknown-linux-musl.tar.gz"

for tool in tar sha256sum install; do
    command -v "$tool" >/dev/null || fail "$tool is needed, and not here"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Without encryption somebody on the way could change both the archive and its sum. A sum that is given settles that.
fetch() {
    case $1 in
    https://*) ;;
    http://*) [ -n "$sum" ] || fail "$1 is not encrypted; use https, or give the checksum with --sha256" ;;
    *)
        [ -f "$1" ] || fail "there is no file $1"
        cp "$1" "$2"
        return
        ;;
    esac
    command -v curl >/dev/null || fail "curl is needed to fetch $1, and not here"
    curl --fail --silent --show-error --location --proto-redir =https --output "$2" "$1" || fail "$1 could not be fetched"
}

name=${archive##*/}
case $name in
*.tar.gz) ;;
*) fail "$name is no .tar.gz" ;;
esac
if [ -z "$sum" ]; then
    beside=${archive%"$name"}SHA256SUMS
    fetch "$beside" "$work/SHA256SUMS"
    sum=$(awk -v name="$name" '$2 == name || $2 == "*" name { print $1 }' "$work/SHA256SUMS")
    [ -n "$sum" ] || fail "$beside does not name $name"
fi
fetch "$archive" "$work/$name"
found=$(sha256sum "$work/$name" | cut -d ' ' -f 1)
[ "$found" = "$sum" ] || fail "the checksum of $name is wrong, so nothing is installed
  expected $sum
  found    $found"

mkdir "$work/unpacked"
tar -xzf "$work/$name" -C "$work/unpacked" --strip-components=1 --no-same-owner
[ -f "$work/unpacked/sprag" ] || fail "$name holds no program sprag"
version=$("$work/unpacked/sprag" -V) || fail "the program in $name does not run on this machine"

install -d "$prefix/bin" || fail "$prefix/bin cannot be made; use sudo, or another --prefix"
install -m 0755 "$work/unpacked/sprag" "$prefix/bin/sprag" || fail "$prefix/bin cannot be written; use sudo, or another --prefix"
echo "$version is in $prefix/bin/sprag"

if [ "$service" = yes ]; then
    units=${SYSTEMD_UNIT_DIR:-/etc/systemd/system}
    install -d "$units"
    sed "s|^ExecStart=[^ ]*|ExecStart=$prefix/bin/sprag|" "$work/unpacked/sprag.service" >"$work/sprag.service"
    install -m 0644 "$work/sprag.service" "$units/sprag.service" || fail "$units cannot be written; use sudo"
    echo "the unit is in $units; start it with: systemctl daemon-reload && systemctl enable --now sprag"
fi
