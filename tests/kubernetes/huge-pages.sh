#!/bin/bash
# In the cluster: a PostgreSQL in a pod comes onto huge pages by what a plan says.
#
#   tests/kubernetes/huge-pages.sh UNTAX
#
# Without huge pages among its resources the pod may use none: `untax check` must say so first of
# all. What the plan hands over is then done word for word: the API server is asked, the script
# prepares the node, the patch is applied. The server must start with huge_pages=on, fill its
# buffers, and be well by a second check.
set -euo pipefail
here=$(dirname "$0")

untax=$1
work=$RUN/huge-pages
pod=database-0
mkdir "$work"

say() { echo "huge-pages: $*"; }

fail() {
    say "FAILED: $*"
    kubectl get pods --output wide || true
    kubectl describe "pod/$pod" | tail -n 12 || true
    kubectl logs --tail 10 "$pod" || true
    exit 1
}

sql() { kubectl exec "$pod" -- psql -U postgres --no-psqlrc --quiet --tuples-only --no-align -c "$1"; }

# ready: until the pod answers.
ready() {
    for _ in {1..240}; do
        ! kubectl wait --for=condition=Ready "pod/$pod" --timeout=1s >/dev/null 2>&1 || return 0
        sleep 0.5
    done
    fail "$1"
}

# Checks the pod; $1 names the check's files.
check() {
    local id
    "$untax" --state-dir "$work/state" check --pod "default/$pod" --window 2s --json \
        >"$work/$1.json" || [ $? -eq 1 ] || fail "untax check failed"
    "$untax" --state-dir "$work/state" check --replay "$(jq --raw-output .run "$work/$1.json")" \
        >"$work/$1.txt" || [ $? -eq 1 ] || fail "untax check --replay failed"
    id="$(kubectl get pod "$pod" --output jsonpath='{.metadata.uid} {.status.containerStatuses[0].containerID}')"
    [ "$(of "$1" '.pod.uid + " " + .container.runtime + "://" + .container.id')" = "$id" ] ||
        fail "the check does not name pod and container $id"
    say "untax check names the pod and container: $id"
}

# What a check says of the one database.
of() { jq --raw-output ".databases | if length == 1 then .[0] else error end | $2" "$work/$1.json"; }

finds() { of "$1" '.findings[].rule' | grep -qx "$2"; }

# The same pod with huge_pages=on, which does not fall back.
refused_on() {
    sed -e 's/value: "try"/value: "on"/' -e 's/: database/: refused/' "$here/database.yaml" |
        kubectl apply --filename - >/dev/null
    for _ in {1..120}; do
        if kubectl logs refused-0 2>/dev/null | grep -q 'could not map anonymous shared memory'; then
            kubectl delete statefulset refused --cascade=foreground >/dev/null
            return
        fi
        sleep 0.5
    done
    pod=refused-0
    fail "PostgreSQL with huge_pages=on did not die of its limit"
}

kubectl apply --filename "$here/database.yaml" >/dev/null
ready "the pod without huge pages does not start"
check before
finds before hugepage-limit || fail "untax check does not find hugepage-limit"
grep -m1 -E '^  (high|medium|low|info) ' "$work/before.txt" | grep -q hugepage-limit ||
    fail "another finding than hugepage-limit comes first"
say "without huge pages among its resources: $(of before \
    '.findings[] | select(.rule == "hugepage-limit").summary')"
refused_on
say "with huge_pages=on the same pod does not start"

"$untax" --state-dir "$work/state" plan --from "$(jq --raw-output .run "$work/before.json")" \
    --page 2m -o "$work/plan" >/dev/null 2>&1
patch=$(find "$work/plan" -name '*-pod-patch.yaml')
pages=$(jq '.sizing.databases[0].huge_pages["2m"]' "$work/plan/plan.json")
"$here/manifests.sh" "$work/plan"

say "preparing the node: $pages pages"
sh "$work/plan/kubernetes-node-2mi.sh" "$NODE" >"$work/node.txt" 2>&1 ||
    { cat "$work/node.txt"; fail "the script did not prepare the node"; }
offered=$(kubectl get node "$NODE" --output jsonpath='{.status.allocatable.hugepages-2Mi}')
[ "$offered" = "$((pages * 2))Mi" ] || fail "the node offers $offered, not $pages pages"
say "the kubelet offers hugepages-2Mi: $offered"

kubectl patch statefulset database --patch-file "$patch" >/dev/null
kubectl set env statefulset/database HUGE_PAGES=on >/dev/null
# There is no other node that could have taken it: as the patch says.
[ "$(kubectl get pod "$pod" --output jsonpath='{.status.phase}')" = Pending ] ||
    fail "the drained pod runs somewhere"
kubectl delete pod "$pod" >/dev/null
ready "the patched pod does not start"
[ "$(sql 'show huge_pages')" = on ] || fail "the server does not run with huge_pages=on"
# One row to a page of the database, until the buffers are full: no limit may be in the way.
sql "create unlogged table filler (t text) with (fillfactor = 10)"
sql "insert into filler select repeat('x', 800) from generate_series(1, 40000)"
[ "$(sql 'select count(*) from filler')" = 40000 ] || fail "the server lost rows"
check after
[ "$(of after .memory.page_size_bytes)" = $((2 << 20)) ] || fail "it is not on pages of 2 MiB"
server=$(of after .pid)
huge=$(awk '/^Size:/ { size = $2 } /^KernelPageSize: *2048 kB/ { huge += size } END { print huge / 1024 }' \
    "/proc/$server/smaps")
[ "$huge" -ge 256 ] || fail "$huge MiB of the server are on huge pages"
for rule in hugepage-limit small-pages hugepages-short; do
    ! finds after "$rule" || fail "untax check still finds $rule"
done
say "the patched pod runs with huge_pages=on, $huge MiB on pages of 2 MiB," \
    "$(awk '/^HugePages_(Total|Free):/ { print $1, $2 }' /proc/meminfo | tr '\n' ' ')"
kubectl delete statefulset database --cascade=foreground >/dev/null
say passed
