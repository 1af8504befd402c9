#!/bin/bash
# In the cluster: the agent as a DaemonSet, beside a PostgreSQL under load.
#
#   tests/kubernetes/agent.sh UNTAX PROMETHEUS-DIRECTORY [HELM]
#
# With HELM the chart is installed; else the manifest, which is made of it. A real Prometheus on the node
# scrapes the pod, and has what `untax agent last` in the pod says of the same window. Each capability is
# taken away in turn, and hostPID: what is then not measured says why. Deleting it leaves its state directory.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

untax=$1 prometheus=$2 helm=${3:-}
work=$RUN/agent
mkdir "$work"
agents=(--namespace untax)

say() { echo "agent: $*"; }

fail() {
    say "FAILED: $*"
    kubectl get pods --all-namespaces --output wide || true
    kubectl "${agents[@]}" describe daemonset/untax-agent | tail -n 15 || true
    kubectl "${agents[@]}" logs --tail 10 daemonset/untax-agent || true
    kubectl "${agents[@]}" get events --field-selector type=Warning | tail -n 5 || true
    exit 1
}

# until WHAT COMMAND…: waits for a command to succeed.
until_so() {
    local what=$1
    shift
    for _ in {1..240}; do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.5
    done
    fail "$what"
}

node() { ssh "root@$NODE" "$@"; }

# The last check of the agent: of its pod that is no older than the last change.
last() { kubectl "${agents[@]}" exec daemonset/untax-agent -- /usr/bin/untax agent last >"$work/last.json"; }

# What it says of the PostgreSQL, by jq.
of() { jq --raw-output '.databases[] | select(.name == "default/database-0/postgres") | '"$1" "$work/last.json"; }

knows_database() { last && [ -n "$(of .pid)" ]; }

install_agent() {
    if [ -n "$helm" ]; then
        kubectl create namespace untax >/dev/null
        node "$helm" --kubeconfig "$RUN/admin.kubeconfig" install untax "$here/../../deploy/chart/untax" \
            --namespace untax --set window=3s,imagePullPolicy=Never >/dev/null
    else
        sed -e 's/--window=60s/--window=3s/' -e 's/"IfNotPresent"/Never/' "$here/../../deploy/agent.yaml" |
            kubectl apply --filename - >/dev/null
    fi
}

# The patch is JSON for the pod's spec. The agent's old pod is gone when the new one is ready.
change() {
    kubectl "${agents[@]}" patch daemonset untax-agent --type json --patch "$1" >/dev/null
    kubectl "${agents[@]}" rollout status daemonset/untax-agent --timeout 120s >/dev/null ||
        fail "no pod after $1"
    until_so "no database after $1" knows_database
}

security=/spec/template/spec/containers/0/securityContext/capabilities/add
all='["BPF","PERFMON","SYS_PTRACE","SETUID","SETGID"]'

# Without capability $1 something more is not measured than with all of them, or a fact is denied, and the
# words of that hold $2.
names_its_gap() {
    local without words
    without=$(jq --compact-output --arg gone "$1" '. - [$gone]' <<<"$all")
    change '[{"op": "replace", "path": "'$security'", "value": '"$without"'}]'
    words=$(jq --raw-output '[.. | strings] | unique[]' "$work/last.json" | sort)
    comm -13 "$work/words" <(echo "$words") >"$work/new"
    grep -qE "$2" "$work/new" || { cat "$work/new"; fail "without $1 nothing says $2"; }
    say "without $1: $(grep -m1 -E "$2" "$work/new" | cut -c1-150)"
}

# Without capability $1 the agent tells the database all the same, and why nothing is traced.
stays_without() {
    local without
    without=$(jq --compact-output --arg gone "$1" '. - [$gone]' <<<"$all")
    change '[{"op": "replace", "path": "'$security'", "value": '"$without"'}]'
    of '.unmeasured[].id' | grep -qE 'needs-root|no-bpf|other-pid-namespace' ||
        fail "without $1 nothing says why it is not traced"
    say "without $1: $(of '.unmeasured[] | select(.id | test("root|bpf|pid")) | .why' | head -n 1 | cut -c1-150)"
}

asked() {
    node curl -s --get http://127.0.0.1:9090/api/v1/query --data-urlencode "query='$1'"
}

# Prometheus' rows are the last check's, once both are of one window.
rows_equal() {
    local scraped
    last
    scraped=$(asked untax_agent_last_window_timestamp_seconds | jq --raw-output '.data.result[0].value[1]')
    jq --exit-status --arg scraped "$scraped" '(.taken_at | sub("\\.[0-9]+"; "") | fromdate) == ($scraped | tonumber | floor)' \
        "$work/last.json" || return 1
    asked 'untax_finding{pod="database-0"}' >"$work/findings.json"
    asked 'untax_unmeasured{pod="database-0"}' >"$work/gaps.json"
    asked 'untax_tax_ratio{pod="database-0"}' >"$work/taxes.json"
    diff <(of '.findings[].rule' | sort -u) <(rows "$work/findings.json" .metric.rule) &&
        diff <(of '.unmeasured[] | .rule + " " + .id' | sort -u) <(rows "$work/gaps.json" '.metric.rule + " " + .metric.id') &&
        diff <(of '.findings[] | select(.tax != null) | .rule' | sort -u) <(rows "$work/taxes.json" .metric.rule)
}

rows() { jq --raw-output ".data.result[] | $2" "$1" | sort -u; }

scrape() {
    local address
    address=$(kubectl "${agents[@]}" get pods --output jsonpath='{.items[0].status.podIP}')
    cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 1s}
scrape_configs:
  - {job_name: untax, honor_labels: true, static_configs: [{targets: ["$address:9871"]}]}
END
    node "echo \$\$ >$work/scraper; exec $prometheus/prometheus --config.file=$work/prometheus.yml --storage.tsdb.path=$work/data \
        --web.listen-address=127.0.0.1:9090 >$work/prometheus.log 2>&1" &
    scraper=$!
    until_so "Prometheus has no row of the pod" rows_equal
    say "Prometheus has what the last check says: $(rows "$work/findings.json" .metric.rule | tr '\n' ' ')"
    node "kill $(<"$work/scraper")"
    wait "$scraper" || true
}

made_state=$([ -e /var/lib/untax ] || echo yes)
"$here/agent-image.sh" "$untax" "$work/image.tar"
node "$PROGRAMS/ctr" --namespace k8s.io images import "$work/image.tar" >/dev/null
kubectl apply --filename "$here/database.yaml" >/dev/null
install_agent
kubectl "${agents[@]}" rollout status daemonset/untax-agent --timeout 120s >/dev/null || fail "not ready"
say "the DaemonSet is ready, installed by ${helm:+helm}${helm:-the manifest}"
until_so "the database does not start" kubectl wait --for=condition=Ready pod/database-0 --timeout=1s
kubectl exec database-0 -- sh -c 'PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -1):$PATH
    pgbench -i -s 1 -q -U postgres postgres 2>/dev/null
    nohup pgbench -S -c 2 -T 600 -U postgres postgres >/dev/null 2>&1 &'
until_so "the agent does not know the database" knows_database
jq --raw-output '[.. | strings] | unique[]' "$work/last.json" | sort >"$work/words"
say "the node's own machine id: $(jq --compact-output .host.machine_id "$work/last.json" | cut -c1-24)…"
jq --exit-status '.host.distribution.id != null' "$work/last.json" >/dev/null || fail "no distribution of the node"
plugin=$here/../../deploy/kubectl/kubectl-untax
"$plugin" check database-0 >"$work/plugin" && grep -q PostgreSQL "$work/plugin" ||
    fail "the plugin does not show the pod's database: $(cat "$work/plugin")"
"$plugin" top >"$work/plugin" && grep -q 'default/database-0/postgres' "$work/plugin" ||
    fail "the plugin does not list the database: $(cat "$work/plugin")"
! "$plugin" check none >/dev/null 2>&1 || fail "the plugin shows a pod that is not there"
say "kubectl untax: $(tail -n 1 "$work/plugin" | tr '\t' ' ')"
scrape
# Without the first two nothing is traced. Here that is so anyway, and said to be: this node has a pid
# namespace of its own, in which processes have other numbers than in the kernel.
for capability in BPF PERFMON; do
    stays_without "$capability"
done
names_its_gap SYS_PTRACE CAP_SYS_PTRACE
names_its_gap SETUID "server's user"
names_its_gap SETGID "server's user"
kubectl "${agents[@]}" patch daemonset untax-agent --type json \
    --patch '[{"op": "replace", "path": "/spec/template/spec/hostPID", "value": false}]' >/dev/null
says_host_pid() { kubectl "${agents[@]}" logs daemonset/untax-agent 2>&1 | grep 'hostPID: true'; }
until_so "without hostPID nothing says so" says_host_pid
say "without hostPID: $(says_host_pid | head -n 1)"
if [ -n "$helm" ]; then
    node "$helm" --kubeconfig "$RUN/admin.kubeconfig" uninstall untax --namespace untax >/dev/null
fi
kubectl delete namespace untax >/dev/null
no_agent() { ! pgrep -f '^/usr/bin/untax --state-dir=/var/lib/untax agent'; }
until_so "the agent is not gone" no_agent
if [ -n "$made_state" ]; then
    rm -rf /var/lib/untax
fi
say passed
