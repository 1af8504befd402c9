#!/bin/sh
# Made by untax: prepares a node for databases on huge pages.
#
#   sh kubernetes-node-@SIZE@.sh NODE      where kubectl works; @BY@
#
# The order matters: a kubelet reads the pools when it starts, and what runs on the node keeps
# memory from being in one piece.
@ROOM@#
# Do not name huge pages in the kubelet's reservedMemory unless its memory manager is on: it may
# refuse to start.
set -eu
node=${1:?usage: kubernetes-node-@SIZE@.sh NODE}

# 1. No pods. This refuses where one keeps data in an emptyDir, which would be lost: look at it
#    before you add --delete-emptydir-data.
kubectl drain "$node" --ignore-daemonsets

# 2. The pool: @PAGES@ pages. The kernel is asked until it has found them, for a minute.
@BOOT@# 3. What it really has is read back: another number ends this script.
@POOL@
# 4. The kubelet takes notice when it starts.
@RESTART@
kibibytes() {
    case $1 in
        *Ti) echo $((${1%Ti} << 30)) ;;
        *Gi) echo $((${1%Gi} << 20)) ;;
        *Mi) echo $((${1%Mi} << 10)) ;;
        *Ki) echo "${1%Ki}" ;;
        *) echo 0 ;;
    esac
}
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
    has=$(kubectl get node "$node" -o jsonpath='{.status.allocatable.hugepages-@NAME@}')
    [ "$(kibibytes "$has")" -lt @KIBIBYTES@ ] || break
    sleep 5
done
[ "$(kibibytes "$has")" -ge @KIBIBYTES@ ] || {
    echo "$node offers hugepages-@NAME@: $has, not @QUANTITY@" >&2
    exit 1
}

# 5. Pods find it by the label; others stay away by the taint.
kubectl label node "$node" --overwrite @LABEL@-@NAME@=true
kubectl taint node "$node" --overwrite @KEY@=@VALUE@:NoSchedule

# 6. Open for databases.
kubectl uncordon "$node"
