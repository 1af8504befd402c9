#!/bin/bash
# In the cluster: the API server accepts what a plan hands over, by dry runs on the server.
#
#   tests/kubernetes/manifests.sh DIRECTORY…
#
# cargo test -p untax-remedies --test kubernetes holds the files in crates/remedies/tests/kubernetes
# to what plans write. A patch is for a StatefulSet whose container is called as the patch says.
set -euo pipefail
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "manifests: $*"; }

fail() {
    say "FAILED: $*"
    [ ! -s "$work/said" ] || cat "$work/said"
    exit 1
}

# Runs kubectl; a field that the server does not know is only a warning of it.
accepted() {
    kubectl "$@" >"$work/out" 2>"$work/said" && ! grep -q '^Warning' "$work/said"
}

# A StatefulSet without pods for a patch: $1 is the file. Prints its name.
make_set() {
    local name container
    container=$(sed -n 's/^ *- name: \([^ ]*\) # the database.s container$/\1/p' "$1")
    [ -n "$container" ] || fail "$1 names no container"
    name=for-$container
    sed -e "s/- name: postgres$/- name: $container/" -e 's/replicas: 1/replicas: 0/' \
        -e "s/^  name: database/  name: $name/" "$here/database.yaml" |
        kubectl apply --filename - >/dev/null
    echo "$name"
}

# The patched container asks for huge pages, as much as it may have, and keeps what it had.
try_patch() {
    local set
    set=$(make_set "$1")
    accepted patch statefulset "$set" --dry-run=server --output json --patch-file "$1" ||
        fail "$1 is refused"
    jq --exit-status '.spec.template.spec | (.nodeSelector | length == 1) and .tolerations != null
        and (.containers | length == 1) and (.containers[0] | .image == "untax.invalid/host:1"
            and (.resources | (.requests | del(.cpu)) == (.limits | del(.cpu))
                and .requests.cpu != null
                and ([.limits | keys[] | select(startswith("hugepages-"))] | length == 1)))' \
        "$work/out" >/dev/null || fail "$1 does not change what it should"
    # The server looks at this at all: a limit that is no whole page.
    sed 's/^\( *hugepages-[12][MG]i:\).*/\1 1Mi/' "$1" >"$work/broken.yaml"
    ! accepted patch statefulset "$set" --dry-run=server --patch-file "$work/broken.yaml" ||
        fail "half a page is accepted"
}

# Every object of a file; one with a field that does not exist is refused.
try_objects() {
    accepted apply --dry-run=server --filename "$1" || fail "$1 is refused"
    sed 's/^metadata:/nonsense: 1\n&/' "$1" >"$work/broken.yaml"
    ! accepted apply --dry-run=server --filename "$work/broken.yaml" ||
        fail "a field that does not exist is accepted"
}

kubectl apply --filename "$here/node-feature-rule.yaml" >/dev/null
kubectl wait --for=condition=Established --timeout=60s \
    crd/nodefeaturerules.nfd.k8s-sigs.io >/dev/null
tried=0
for file in $(find "$@" -name '*.yaml' | sort); do
    case $file in
    *-pod-patch.yaml) try_patch "$file" ;;
    *) try_objects "$file" ;;
    esac
    say "the server accepts $(basename "$(dirname "$file")")/$(basename "$file")"
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || fail "no manifests in $*"
say passed
