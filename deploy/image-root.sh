#!/bin/sh
# Lays out the root folder of an image: a program, the libraries it names, certificates, one user that is not root.
#   deploy/image-root.sh PROGRAM FOLDER
set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 PROGRAM FOLDER" >&2
    exit 2
fi
program=$1
root=$2

if [ -e "$root" ]; then
    echo "$root is there already; name a folder that is not" >&2
    exit 1
fi
mkdir -p "$root/etc/ssl/certs" "$root/agents" "$root/data" "$root/tmp"
cp "$program" "$root/holdpoint"

# The libraries and the loader, each where the program looks for it. Names are resolved by the C library itself.
ldd "$program" | grep -o '/[^ ]*' | sort -u | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done

cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
echo 'holdpoint:x:65532:65532::/data:/holdpoint' >"$root/etc/passwd"
echo 'holdpoint:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"

chown -R 65532:65532 "$root/data"
chmod 1777 "$root/tmp"
