#!/bin/bash
# The first process of the cluster's node: starts its programs and keeps them running.
#
# RUN is the cluster's directory, PROGRAMS where its programs are, NODE the node's name and GROUP
# the control group above its pods. The API server knows users by tokens; what is encrypted is so
# with keys that are made here and die here.
set -euo pipefail

PATH=$PROGRAMS:$PATH
address=192.0.2.1
pods=198.51.100.0/24
services=203.0.113.0/24

# start NAME COMMAND…: again and again, as a service manager would.
start() {
    local name=$1
    shift
    while :; do
        "$@" 9<&- >>"$RUN/log/$name" 2>&1 &
        echo $! >"$RUN/$name.pid"
        wait $! || true
        sleep 0.2
    done &
}

# user NAME GROUP: a token, and how to use it.
user() {
    local token
    token=$(openssl rand -hex 16)
    echo "$token,$1,$1,\"$2\"" >>"$RUN/tokens"
    cat >"$RUN/${1##*:}.kubeconfig" <<END
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$address:6443", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: $token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
END
}

# The kubelet sets a few of the kernel's settings, which are the whole machine's. It finds them set.
cover_settings() {
    local setting file
    mkdir "$RUN/settings"
    for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 \
        kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
        file=$RUN/settings/$(basename "${setting%=*}")
        echo "${setting#*=}" >"$file"
        mount --bind "$file" "/proc/sys/${setting%=*}"
    done
}

make_network() {
    hostname "$NODE"
    ip link set lo up
    # The node's address is that of a bridge without ports: nothing but the node is reached by it.
    ip link add node type bridge
    ip address add "$address/24" dev node
    ip link set node up
    ip route add default dev node
    mkdir "$RUN/cni"
    cat >"$RUN/cni/10-pods.conflist" <<END
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp",
  "ipam": {"type": "host-local", "dataDir": "$RUN/addresses", "ranges": [[{"subnet": "$pods"}]],
  "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
}

start_control_plane() {
    openssl genrsa -out "$RUN/accounts.key" 2048 2>/dev/null
    user admin system:masters
    user "system:node:$NODE" system:nodes
    start etcd etcd --data-dir "$RUN/etcd" --unsafe-no-fsync
    start kube-apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 \
        --advertise-address="$address" --cert-dir="$RUN/certificates" \
        --kubelet-preferred-address-types=InternalIP \
        --service-cluster-ip-range="$services" --authorization-mode=Node,RBAC \
        --token-auth-file="$RUN/tokens" --service-account-issuer=https://untax.invalid \
        --service-account-key-file="$RUN/accounts.key" \
        --service-account-signing-key-file="$RUN/accounts.key"
    until kubectl --kubeconfig "$RUN/admin.kubeconfig" get --raw /readyz >/dev/null 2>&1; do
        sleep 0.5
    done
    start kube-scheduler kube-scheduler --kubeconfig "$RUN/admin.kubeconfig" --leader-elect=false
    start kube-controller-manager kube-controller-manager --kubeconfig "$RUN/admin.kubeconfig" \
        --leader-elect=false --service-account-private-key-file="$RUN/accounts.key" \
        --root-ca-file="$RUN/certificates/apiserver.crt"
    # Its limits of connections are the whole machine's: 0 leaves them as they are.
    start kube-proxy kube-proxy --kubeconfig "$RUN/admin.kubeconfig" --hostname-override "$NODE" \
        --proxy-mode nftables --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0s \
        --conntrack-tcp-timeout-close-wait 0s
}

start_runtime() {
    # crun refuses version 2 of control groups beside version 1, so it runs where the former is unmounted;
    # that of Debian 12 also refuses bundles of a later version than it knows, which use nothing new here.
    cat >"$RUN/crun" <<END
#!/bin/sh
before='' bundle=.
for word; do
    [ "\$before" != --bundle ] || bundle=\$word
    before=\$word
done
[ ! -e "\$bundle/config.json" ] || sed -i 's/"ociVersion": *"[^"]*"/"ociVersion":"1.0.2"/' "\$bundle/config.json"
exec unshare --mount sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec crun "\$@"' crun "\$@"
END
    chmod 755 "$RUN/crun"
    cat >"$RUN/containerd.toml" <<END
version = 2
root = "$RUN/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "untax.invalid/pause:1"
  # Where root itself may not protect a process from being killed first.
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun.options]
  BinaryName = "$RUN/crun"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "$PROGRAMS/cni"
  conf_dir = "$RUN/cni"
END
    start containerd containerd --config "$RUN/containerd.toml"
    until ctr version >/dev/null 2>&1; do sleep 0.2; done
    for image in "$PROGRAMS"/images/*.tar; do
        ctr --namespace k8s.io images import "$image"
    done
}

start_kubelet() {
    cat >"$RUN/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /$GROUP
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
protectKernelDefaults: true
# A full disk of the machine is no reason to refuse pods.
evictionHard: {memory.available: 100Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%}
imageGCHighThresholdPercent: 100
END
    if [ -n "${CPU_MANAGER:-}" ]; then
        # Pods of whole CPUs get them for themselves; the first one is for all others.
        printf 'cpuManagerPolicy: %s\nreservedSystemCPUs: "0"\n' "$CPU_MANAGER" >>"$RUN/kubelet.yaml"
    fi
    start kubelet kubelet --config "$RUN/kubelet.yaml" --hostname-override "$NODE" \
        --kubeconfig "$RUN/$NODE.kubeconfig" --node-ip "$address" --root-dir "$RUN/kubelet" \
        --cert-dir "$RUN/kubelet/certificates"
}

# As an init system has it: volumes of pods follow mounts of the node.
mount --make-rshared /
cover_settings
make_network
start_control_plane
start_runtime
start_kubelet
wait
