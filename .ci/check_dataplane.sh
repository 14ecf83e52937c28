#!/usr/bin/env bash
# Runs the integer exports of the shipped weights, and of networks that set alpha alone: C bit for bit,
# replayed control records, and the BPF program in this machine's kernel: check_dataplane.sh WORK. WORK is a
# folder for what is made.
source "$(dirname "$0")/exports.sh"

bufgym=$target/bufgym
cargo build --release --locked --quiet "${flags[@]}" --bin bufgym

builds=("-O2" "$sanitized" "-O3 -march=native")
grep -q avx2 /proc/cpuinfo && builds+=("-O3 -mavx2")
grep -q avx512_vnni /proc/cpuinfo && builds+=("-O3 -mavx512vnni -mavx512bw -mavx512vl") ||
  echo "this processor has no AVX-512 VNNI: that form of the code is compiled, not run"

# compile COMPILER FLAGS CHECKPOINT PROGRAM: dataplane/PROGRAM.c with the checkpoint's network.
compile() {
  # shellcheck disable=SC2086 # lists of arguments
  $1 $strict $2 -Idataplane "-I$work/$3/c-int8" "$work/$3/c-int8/ndt_int8.c" "dataplane/$4.c" -o "$work/$4"
}

for checkpoint in ndt-fct ndt-fct-alpha ndt-fct-dt; do
  rm -rf "${work:?}/$checkpoint"
  "$bufgym" export --quiet --checkpoint "checkpoints/$checkpoint" --format all --out "$work/$checkpoint"
  for seed in 1 2 3; do
    "$bufgym" sim --quiet --policy "ndt-int8:$work/$checkpoint/c-int8" --scenario ndt-16x1g --seed "$seed" \
      --record-control "$work/$checkpoint/record-$seed" > /dev/null
  done
  for compiler in gcc clang; do
    $compiler $strict -O3 -mavx512vnni -mavx512bw -mavx512vl -c "$work/$checkpoint/c-int8/ndt_int8.c" -o "$work/vnni.o"
    for build in "${builds[@]}"; do
      echo "$checkpoint, $compiler $build"
      compile "$compiler" "$build" "$checkpoint" check_int8
      "$work/check_int8" "$work/$checkpoint/golden" 1 4 16 96
    done
    compile "$compiler" "$sanitized" "$checkpoint" replay
    "$work/replay" "$work/$checkpoint/record-1" | tail -n 1
    compile "$compiler" "-O2" "$checkpoint" replay
    for seed in 1 2 3; do
      "$work/replay" "$work/$checkpoint/record-$seed"
    done
  done
done

echo "BPF"
test -e /usr/include/bpf/libbpf.h || debian_packages libbpf-dev
include="-I/usr/include/$(uname -m)-linux-gnu"
for exported in "$work/ndt-fct-alpha" "$work/ndt-fct"; do
  clang -O2 -g -mcpu=v3 -Wall -Wextra -Werror -target bpf "$include" -c "$exported/ebpf/ndt.bpf.c" -o "$work/ndt.bpf.o"
  gcc -std=gnu99 -Wall -Wextra -Werror -O2 "-I$exported/c-int8" dataplane/check_ebpf.c \
    "$exported/c-int8/ndt_int8.c" -lbpf -o "$work/check_ebpf"
  status=0
  "$work/check_ebpf" "$work/ndt.bpf.o" || status=$?
  # 77: this kernel or user cannot load BPF programs, and the program has said why.
  [ "$status" -eq 0 ] || [ "$status" -eq 77 ]
done
