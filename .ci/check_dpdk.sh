#!/usr/bin/env bash
# Builds the switch on DPDK and forwards TCP and UDP between network namespaces through it, with networks
# that set alpha, and early drop besides; all its verdicts, triggers and levels must be the replay's:
# check_dpdk.sh WORK. WORK is a folder for what is made. Exit code 77, and the reason in a line
# `not run: ...`, where this machine does not allow it.
source "$(dirname "$0")/exports.sh"

PATH=$PATH:/usr/sbin:/sbin # ip, tc and ethtool, for others than root
seconds=${DPDK_SECONDS:-6}
rate=${DPDK_RATE_MBIT:-100}
hosts=4
# How the switch is started, such as `chrt -f 10` on a machine that has other work.
read -r -a starter <<< "${DPDK_STARTER:-}"

not_run() {
  echo "not run: $*"
  exit 77
}

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null && sudo -n true 2> /dev/null || not_run "network namespaces need root, or sudo without a password"
  sudo=(sudo -n)
fi
[ "$(uname -m)" = x86_64 ] || not_run "tried on x86-64 alone"
complete() { # `command -v` with several names is content with one of them
  local program
  pkg-config --exists libdpdk 2> /dev/null || return 1
  for program in ip tc ethtool; do
    command -v "$program" > /dev/null || return 1
  done
}
complete || debian_packages libdpdk-dev pkg-config iproute2 ethtool ||
  not_run "DPDK, iproute2 or ethtool is missing and cannot be installed"

# ---- the network: a host per namespace, and one namespace for the switch

prefix=bufgym-dpdk-$$
running=()

# Ends the programs in a namespace and removes it, with its links.
remove() {
  local pids
  pids=$("${sudo[@]}" ip netns pids "$1" 2> /dev/null) || return 0
  # shellcheck disable=SC2086 # a list of processes
  [ -z "$pids" ] || "${sudo[@]}" kill -9 $pids 2> /dev/null || true
  "${sudo[@]}" ip netns del "$1"
}

clean() {
  local name
  for name in "$prefix-switch" $(seq -f "$prefix-%g" 0 $((hosts - 1))); do
    remove "$name"
  done
  wait
  "${sudo[@]}" rm -rf "/var/run/dpdk/$prefix"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

inside() {
  local name=$1
  shift
  "${sudo[@]}" ip netns exec "$prefix-$name" "$@"
}

mac() { printf '02:00:00:00:00:%02x' "$(($1 + 1))"; }

# Frames leave a host as they are on a line: one by one, with checksums, at the line's rate.
make_host() {
  local host=$1 other
  "${sudo[@]}" ip netns add "$prefix-$host"
  "${sudo[@]}" ip link add "port$host" netns "$prefix-switch" type veth peer name eth0 address "$(mac "$host")" netns "$prefix-$host"
  # Nothing but what the programs send.
  inside "$host" ip link set eth0 addrgenmode none
  inside switch ip link set "port$host" addrgenmode none
  inside "$host" ip address add "10.77.0.$((host + 1))/24" dev eth0
  inside "$host" ethtool -K eth0 tx off rx off tso off gso off gro off sg off > /dev/null
  inside switch ethtool -K "port$host" tx off rx off tso off gso off gro off sg off > /dev/null
  inside switch ip link set "port$host" up
  inside "$host" ip link set eth0 up
  inside "$host" ip link set lo up
  inside "$host" tc qdisc add dev eth0 root tbf rate "${rate}mbit" burst 10kb limit 1mb
  for other in $(seq 0 $((hosts - 1))); do
    [ "$other" -eq "$host" ] ||
      inside "$host" ip neighbour add "10.77.0.$((other + 1))" lladdr "$(mac "$other")" dev eth0 nud permanent
  done
}

# What a run has left that was killed.
for name in $(ip netns list | grep -o '^bufgym-dpdk-[0-9]*-[a-z0-9]*'); do
  owner=${name#bufgym-dpdk-}
  [ -e "/proc/${owner%%-*}" ] || remove "$name"
done

"${sudo[@]}" ip netns add "$prefix-switch" 2> "$work/refused" || not_run "$(tail -n 1 "$work/refused")"
vdevs=()
table=()
for host in $(seq 0 $((hosts - 1))); do
  make_host "$host"
  vdevs+=(--vdev "net_af_packet$host,iface=port$host,framecnt=1024,blocksz=4096,framesz=2048,qdisc_bypass=1")
  table+=(--host "$(mac "$host")=$host")
done

# ---- programs

gcc $strict $sanitized dataplane/dpdk/check_histogram.c -o "$work/check_histogram"
"$work/check_histogram"

bufgym=$target/bufgym
cargo build --release --locked --quiet "${flags[@]}" --bin bufgym

# DPDK's headers are not ours to mend.
dpdk=$(pkg-config --cflags libdpdk | sed 's/-I/-isystem /g')
# build COMPILER FLAGS NETWORK PROGRAM: the switch with the network of a folder.
build() {
  # shellcheck disable=SC2046,SC2086 # lists of arguments
  $1 -std=gnu11 -Wall -Wextra -Werror $dpdk $2 -Idataplane "-I$3" dataplane/dpdk/switch.c "$3/ndt_int8.c" \
    $(pkg-config --libs libdpdk) -pthread -o "$4"
}

for network in ndt-fct ndt-fct-alpha; do
  rm -rf "${work:?}/dpdk-$network"
  "$bufgym" export --quiet --checkpoint "checkpoints/$network" --format c-int8 --out "$work/dpdk-$network"
  build clang "-O3 -march=native" "$work/dpdk-$network" "$work/ndt-switch-$network"
  build gcc "-O3 -march=native" "$work/dpdk-$network" "$work/ndt-switch-$network"
  # shellcheck disable=SC2086 # lists of arguments
  gcc $strict -O2 -Idataplane "-I$work/dpdk-$network" "$work/dpdk-$network/ndt_int8.c" dataplane/replay.c \
    -o "$work/replay-$network"
done
build gcc "$sanitized" "$work/dpdk-ndt-fct" "$work/ndt-switch-sanitized"

# What is wrong on the command line is said in a line.
for arguments in "--host 02:00:00:00:00:01" "--host 02:00:00:00:00:01=9" "--host x=0" "--rate-mbit 0 --host 02:00:00:00:00:01=0" \
  "--low-level cs --host 02:00:00:00:00:01=0" "--early-from side --host 02:00:00:00:00:01=0" \
  "--early-from back --early-patience 1 --host 02:00:00:00:00:01=0" ""; do
  status=0
  # shellcheck disable=SC2086 # a list of arguments
  "${sudo[@]}" "$work/ndt-switch-ndt-fct" -l 0 --no-huge --no-shconf --no-pci -m 64 --no-telemetry \
    --file-prefix "$prefix" --vdev net_null0 -- $arguments > /dev/null 2> "$work/refused" || status=$?
  tail -n 1 "$work/refused"
  [ "$status" -eq 2 ]
done

# ---- runs

# start NAME COMMAND...: in the background, in a namespace; its process is the last of `running`.
start() {
  local name=$1
  shift
  (exec "${sudo[@]}" ip netns exec "$prefix-$name" "$@") &
  running+=($!)
}

# until_line FILE LINE: waits until the program that was started last says that it is ready.
until_line() {
  local _
  for _ in $(seq 900); do
    ! grep -q "$2" "$1" 2> /dev/null || return 0
    [ -e "/proc/${running[-1]}" ] || break
    sleep 0.1
  done
  tail -n 3 "$1" >&2
  return 1
}

# forward PROGRAM OUT ARGUMENTS...: all other hosts send to host 0, and host 0 to host 1.
forward() {
  local program=$1 out=$2 host process
  shift 2
  running=()
  start switch "${starter[@]}" "$program" -l 0 --no-huge --no-shconf --no-pci -m 128 --no-telemetry \
    --file-prefix "$prefix" "${vdevs[@]}" -- "${table[@]}" --rate-mbit "$rate" --record "$out.record" "$@" \
    > "$out.json" 2> "$out.log"
  until_line "$out.log" forwarding
  for host in 0 1; do
    start "$host" python3 .ci/dpdk_load.py receive > "$out.host-$host.json" 2> "$out.host-$host.log"
    until_line "$out.host-$host.log" ready
  done
  for host in $(seq 0 $((hosts - 1))); do
    start "$host" python3 .ci/dpdk_load.py send "10.77.0.$((host == 0 ? 2 : 1))" "$seconds" \
      "$((host == 0 ? 0 : rate * 4 / 10))" 2> "$out.sender-$host.log"
  done
  # First the senders, which end by themselves.
  wait "${running[@]:3}" || true
  "${sudo[@]}" kill "${running[@]:0:3}"
  for process in "${running[@]:0:3}"; do
    wait "$process" || {
      tail -n 3 "$out.log" "$out".host-*.log >&2
      return 1
    }
  done
  running=()
  "${sudo[@]}" chmod a+r "$out.record"
}

# verify NETWORK OUT: counts, and the replay of what was recorded.
verify() {
  python3 .ci/check_dpdk.py "$2.json" "$2.host-0.json" "$2.host-1.json"
  "$work/replay-$1" "$2.record" > "$2.replay" || {
    cat "$2.replay"
    return 1
  }
  grep -E '^(verdicts|triggers|levels|heads)_compared |^(loss|waiting)_table_overflows |^differences ' "$2.replay" | paste -sd ' '
}

echo "ndt-fct: alpha and early drop from the front over FAB"
forward "$work/ndt-switch-ndt-fct" "$work/dpdk-both" --low-level fab
verify ndt-fct "$work/dpdk-both"
echo "the same over Dynamic Threshold, from the second packet of a queue on and out of patience on what arrives"
forward "$work/ndt-switch-ndt-fct" "$work/dpdk-patient" --low-level dt --early-min-bytes 1 --early-patience 1
verify ndt-fct "$work/dpdk-patient"
echo "ndt-fct-alpha: alpha over FAB"
forward "$work/ndt-switch-ndt-fct-alpha" "$work/dpdk-alpha" --low-level fab --idle-us 100
verify ndt-fct-alpha "$work/dpdk-alpha"
echo "with sanitizers, over Dynamic Threshold, early drop of what arrives, a record that becomes full"
forward "$work/ndt-switch-sanitized" "$work/dpdk-sanitized" --low-level dt --early-from back --record-events 20000 --buffer-bytes 100000
verify ndt-fct "$work/dpdk-sanitized"
