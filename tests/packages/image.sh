#!/bin/bash
# The image is one that tools of others read, and its program runs, as root and as another user.
#
#   tests/packages/image.sh IMAGE VERSION
. "$(dirname "$0")/common.sh"

image=$(realpath "$1") version=$2
mkdir "$work/layout"
tar --extract --file "$image" --directory "$work/layout"
umoci stat --image "$work/layout:$version" >/dev/null || fail "umoci cannot read the image"
umoci unpack --image "$work/layout:$version" "$work/bundle" >/dev/null 2>&1 || fail "umoci cannot unpack it"

bundle=$work/bundle
jq '.process.terminal = false | .process.args = ["/usr/bin/untax", "explain", "small-pages"] |
    del(.linux.resources, .linux.seccomp) | .linux.namespaces |= map(select(.type != "network"))' \
    "$bundle/config.json" >"$work/config.json"
for user in 0 65532; do
    jq ".process.user = {uid: $user, gid: $user} | .root.readonly = true" "$work/config.json" >"$bundle/config.json"
    runc run --bundle "$bundle" "untax-image-test-$$-$user" >"$work/out" 2>&1 </dev/null ||
        fail "it does not run as $user: $(cat "$work/out")"
    grep -q small-pages "$work/out" || fail "it says nothing as $user"
    say "runs as user $user on a root that is read-only"
done
say passed
