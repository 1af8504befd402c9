#!/bin/bash
# Builds what is missing for the cluster and prints the directory of its programs.
#
#   tests/kubernetes/build.sh CACHE-DIRECTORY [--have]      --have only says whether all is there
#
# Kubernetes is built from its released Go module, which needs Go and no other tool. Its staging
# modules are there as directories that are not part of it; they are released beside it as v0.N.
# That takes ten minutes of two processors the first time. One program is built after the other, so
# a build that was stopped is taken up where it ended. The store, the container runtime and the
# network plugins are Debian's, unpacked and not installed; the images are made here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../scripts/suite.sh"

release=1.36.3
suite=trixie
kubernetes=(kube-apiserver kubectl kube-controller-manager kube-scheduler kubelet kube-proxy)
packages=(etcd-server containerd containernetworking-plugins)

cache=${1:?usage: tests/kubernetes/build.sh CACHE-DIRECTORY [--have]}/kubernetes
programs=$cache/$release

fail() {
    echo "tests/kubernetes/build.sh: $*" >&2
    exit 2
}

# A module of our own that asks for Kubernetes and puts the released staging modules in their place.
make_module() {
    local directory=$1 theirs name replacements=()
    printf 'module untax.invalid/kubernetes\n\ngo 1.26\n' >"$directory/go.mod"
    theirs=$(cd "$directory" && go mod download -json "k8s.io/kubernetes@v$release" |
        sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
    while read -r name; do
        replacements+=("-replace=$name=$name@v0.${release#*.}")
    done < <(sed -n 's|^\t\(.*\) => ./staging/.*|\1|p' "$theirs")
    (cd "$directory" && go mod edit -require="k8s.io/kubernetes@v$release" "${replacements[@]}")
}

# Programs get their name when they are whole.
build() {
    local version=k8s.io/component-base/version minor=${release#*.} flags
    flags="-s -w -X $version.gitVersion=v$release -X $version.gitMajor=1"
    flags="$flags -X $version.gitMinor=${minor%.*}"
    (cd "$1" && CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags "$flags" \
        -o "$programs/.$2" "k8s.io/kubernetes/cmd/$2")
    mv "$programs/.$2" "$programs/$2"
}

missing() {
    local program
    for program in "${kubernetes[@]}"; do
        [ -x "$programs/$program" ] || echo "$program"
    done
}

unpack() {
    (suite_open "$suite" "$1" && suite_unpack "$1" "${packages[@]}")
    mv "$1/unpacked/usr/lib/cni" "$programs/"
    mv "$1"/unpacked/usr/bin/{ctr,containerd,containerd-shim-runc-v2} "$programs/"
    mv "$1/unpacked/usr/bin/etcd" "$programs/"
}

have() { [ -z "$(missing)" ] && [ -x "$programs/etcd" ] && [ -d "$programs/images" ]; }

if [ "${2:-}" = --have ]; then
    have
    exit
fi
if ! have; then
    mkdir -p "$programs"
    work=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    if [ -n "$(missing)" ]; then
        command -v go >/dev/null || fail "building Kubernetes needs Go 1.26 or later"
        make_module "$work"
    fi
    for program in $(missing); do
        echo "building $program $release" >&2
        build "$work" "$program" >&2
    done
    [ -x "$programs/etcd" ] || unpack "$work" >&2
    "$here/images.sh" "$work/images" >&2
    rm -rf "$programs/images"
    mv "$work/images" "$programs/"
fi
echo "$programs"
