#!/usr/bin/env bash
# Runs the agent for SONiC against a real Redis server: check_sonic.sh WORK. WORK is a folder for what is made.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$1

# .ci/run hands on how it installs packages.
declare -F debian_packages > /dev/null || debian_packages() {
  echo "please install $*" >&2
  return 1
}
command -v redis-server > /dev/null || debian_packages redis-server
redis-server --version

# Without these tests being left out for want of the server. Crates are not named to cargo, which would select
# other features of their dependencies and compile those once more.
export BUFGYM_REQUIRE_REDIS=1
cargo test --release --locked --no-run --message-format json > "$work/built.json"
mapfile -t suites < <(python3 - "$work/built.json" << 'PYTHON'
import json, sys
for line in open(sys.argv[1]):
    built = json.loads(line)
    if built.get("executable") and built["profile"]["test"] and "adapters/sonic" in built["manifest_path"]:
        print(built["executable"])
PYTHON
)
[ "${#suites[@]}" -gt 0 ]
for suite in "${suites[@]}"; do
  (cd adapters/sonic && "$suite")
done
cargo test --release --locked --test cli sonic::

# The shipped weights in the loop, in processes of their own.
cargo build --release --locked --quiet --example simulated_switch
cargo build --release --locked --quiet --bin bufgym --bin bufgym-sonic-agent
target=${CARGO_TARGET_DIR:-target}/release
mkdir -p "$work/sonic"
socket=$work/sonic/redis.sock
redis-server --port 0 --save '' --unixsocket "$socket" --dir "$work/sonic" > "$work/sonic/redis.log" &
server=$!
trap 'kill "$server" 2> /dev/null || true' EXIT
for _ in $(seq 100); do [ -S "$socket" ] && break; sleep 0.1; done
"$target/examples/simulated_switch" "unix:$socket" 10 40 &
switch=$!
sleep 2
"$target/bufgym" sonic-agent --redis "unix:$socket" --checkpoint checkpoints/ndt-fct-dt \
  --poll-ms 10 --min-interval-ms 10 --stale-ms 2000 --for-s 20 --json > "$work/sonic/agent.json" 2> "$work/sonic/agent.log"
wait "$switch"
tail -n 3 "$work/sonic/agent.log"
python3 - "$work/sonic/agent.json" << 'PYTHON'
import json, sys
result = json.load(open(sys.argv[1]))
print(result)
assert result["decisions"] > 5 and result["writes"] > 0 and result["ports"] == 16
PYTHON
left=$(redis-cli -s "$socket" -n 4 --scan --pattern 'BUFFER_PROFILE|bufgym_*'; redis-cli -s "$socket" -n 6 --scan)
if [ -n "$left" ]; then
  printf 'left by the agent:\n%s\n' "$left" >&2
  exit 1
fi
