#!/bin/sh
# Proves engines for GPUs, with the commands that a user has.
#
#   tools/gpu-proof.sh build DIR    on any machine that has the toolchain iree: makes engines, into DIR
#   tools/gpu-proof.sh prove DIR    on a machine with a GPU: verifies, promotes and pulls them, shows what
#                                   is refused, and writes DIR/gpu.md and DIR/evidence
#   tools/gpu-proof.sh document DIR copies both into docs, and prints nothing else
#   tools/gpu-proof.sh              all three, in a new folder
#
# MLPROMOTE is the program, PYTHON a Python that has the packages onnxruntime and iree-base-runtime in the
# versions of the lock files; without it the installs of mlpromote are used.
# Exit codes: 6 where this machine has no GPU that mlpromote sees, 1 where a proof failed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mlpromote=${MLPROMOTE:-$root/bin/mlpromote}
proof="$root/tools/gpuproof"
say() { printf '== %s\n' "$*" >&2; }

# spec MODEL FILE TARGETS: the spec of an example, with another name and other targets.
spec() {
	awk -v model="$1" -v targets="$3" '
		/^model:/ { print "model: " model; next }
		/^targets:/ { print "targets:"; print targets; skip = 1; next }
		/^[a-z]/ { skip = 0 }
		!skip' "$2"
}

CPU='  - {name: cpu, cpu: {arch: amd64, level: v3}, toolchain: iree, variants: [fp32]}'
AMPERE='  - {name: cuda, accelerator: {arch: sm_80}, compatibility: version-compatible, toolchain: iree'
ADA='  - {name: ada, accelerator: {arch: sm_89}, compatibility: version-compatible, toolchain: iree, variants: [fp32]}'
NEWER='  - {name: blackwell, accelerator: {arch: sm_120}, toolchain: iree, variants: [fp32]}'
AMD='  - {name: cdna, accelerator: {vendor: amd, arch: gfx942}, toolchain: iree, variants: [fp32]}'

# example NAME MODEL TARGETS: a folder with the spec and the files of an example.
example() {
	cp -R "$root/examples/$1" "$dir/$2"
	spec "gpu/$2" "$root/examples/$1/mlpromote.yaml" "$3" >"$dir/$2/mlpromote.yaml"
}

newline='
'

build() {
	mkdir -p "$dir"
	[ -z "$(ls -A "$dir")" ] || { echo "gpu-proof: $dir is not empty" >&2; exit 2; }
	python=$("$mlpromote" toolchain install iree --output json | python3 -c 'import json, sys; print(json.load(sys.stdin)["interpreter"])')
	say "models"
	example digits digits "$CPU$newline$AMPERE}$newline$ADA"
	example text tickets "$CPU$newline$AMPERE, variants: [fp32, fp16]}"
	example digits elsewhere "$CPU$newline$NEWER$newline$AMD"
	example digits faulty "$AMPERE, variants: [fp32]}"
	"$python" "$proof/encoder.py" "$dir/encoder"
	cat >"$dir/encoder/mlpromote.yaml" <<EOF
model: gpu/encoder
version: 1.0.0
source: encoder.onnx
cases: {path: cases/}
variants: [fp32, fp16]
targets:
$CPU
$AMPERE}
limits: {preset: default}
EOF
	for model in digits tickets encoder elsewhere; do
		say "build $model"
		(cd "$dir/$model" && "$mlpromote" build --data "$dir/data" >/dev/null)
	done
	say "build faulty, with a compiler that multiplies one weight by 1.05"
	install=$(dirname "$(dirname "$(dirname "$python")")")
	cp -Rl "$install/venv" "$dir/compiler" 2>/dev/null || cp -R "$install/venv" "$dir/compiler"
	cp "$proof/fault.py" "$(echo "$dir"/compiler/lib/python3*/site-packages)/sitecustomize.py"
	(cd "$dir/faulty" && "$mlpromote" build --data "$dir/data" --python "iree=$dir/compiler/bin/python" >/dev/null)
	rm -rf "$dir/compiler"
}

# step NAME COMMAND...: runs it, and keeps what it printed and its exit code.
step() {
	name=$1
	shift
	say "$name"
	code=0
	"$@" >"$dir/results/$name.out" 2>"$dir/results/$name.err" || code=$?
	printf '%s\n' "$code" >"$dir/results/$name.code"
}

environments() {
	cat >"$dir/data/environments.yaml" <<EOF
version: 2
registry: local
environments:
  staging:
  prod:
    from: staging
    require: [signature, provenance, parity]
    coverage: {node-types: [$1]}
trust:
  - {key: keys/local.pub, roles: [builder, verifier, approver, promoter], resources: ["oci://local/"]}
EOF
}

prove() {
	rm -rf "$dir/results" "$dir/evidence" "$dir/pulled" "$dir/tampered" "$dir/kept" "$dir/kept-faulty"
	mkdir -p "$dir/results"
	export MLPROMOTE_DATA="$dir/data"
	step node "$mlpromote" node describe --output json
	if ! grep -q '"accelerators"' "$dir/results/node.out"; then
		cat "$dir/results/node.err" >&2
		echo "gpu-proof: this machine has no GPU that mlpromote sees: nvidia-smi must list one. Engines for GPUs can be built here, and are proven where the GPU is" >&2
		exit 6
	fi
	set --
	[ -z "${PYTHON:-}" ] || set -- --python "iree=$PYTHON" --python "onnxruntime=$PYTHON"
	for model in digits tickets encoder elsewhere faulty; do
		step "verify-$model-1" "$mlpromote" verify "staging/gpu/$model:1.0.0" --output json "$@"
	done
	for round in 2 3; do
		for model in digits tickets encoder; do
			step "verify-$model-$round" "$mlpromote" verify "staging/gpu/$model:1.0.0" --output json "$@"
		done
	done
	step sandbox "$mlpromote" verify staging/gpu/digits:1.0.0 --target cuda --verbose "$@"
	step check "$mlpromote" report check staging/gpu/encoder:1.0.0 --save "$dir/kept"
	step check-faulty "$mlpromote" report check staging/gpu/faulty:1.0.0 --save "$dir/kept-faulty"
	step replay-faulty "$mlpromote" replay "$dir/kept-faulty/cuda/fp32/bundle.json" "$@"
	python3 "$proof/nodes.py" "$dir/results"
	for kind in here blackwell older-driver no-gpu; do
		step "resolve-$kind" "$mlpromote" resolve gpu/encoder --env staging --node "$dir/results/$kind.json" --explain
	done
	step node-type-here "$mlpromote" node-type put gpu-here "$dir/results/here.json"
	step node-type-blackwell "$mlpromote" node-type put gpu-blackwell "$dir/results/blackwell.json"
	environments gpu-here,gpu-blackwell
	step promote-uncovered "$mlpromote" promote staging/gpu/encoder:1.0.0
	environments gpu-here
	for model in digits tickets encoder elsewhere faulty; do
		step "promote-$model" "$mlpromote" promote "staging/gpu/$model:1.0.0"
	done
	step pull "$mlpromote" pull gpu/encoder --env prod --node "$dir/results/here.json" -o "$dir/pulled"
	step trust "$mlpromote" trust "$dir/pulled"
	step predict "${PYTHON:-python3}" "$proof/predict.py" "$dir/pulled" "$dir/encoder/cases/cases-00000.safetensors"
	step report "$mlpromote" report show prod/gpu/encoder:1.0.0
	cp -R "$dir/data" "$dir/tampered"
	step tamper python3 "$proof/tamper.py" "$dir/results/verify-encoder-1.out" "$dir/tampered"
	step verify-tampered "$mlpromote" verify staging/gpu/encoder:1.0.0 --data "$dir/tampered" "$@"
	step pull-tampered "$mlpromote" pull gpu/encoder --env prod --data "$dir/tampered" --node "$dir/results/here.json" -o "$dir/pulled-tampered"
	rm -rf "$dir/tampered"
	getconf _NPROCESSORS_ONLN >"$dir/results/processors.out"
	nvidia-smi --query-gpu=name,compute_cap,memory.total,driver_version,clocks.max.sm,clocks.max.mem,persistence_mode --format=csv,noheader >"$dir/results/nvidia-smi.out" 2>&1 || true
	python3 "$proof/document.py" "$dir"
}

case ${1:-all} in
build | prove | document)
	[ $# -eq 2 ] || { echo "usage: tools/gpu-proof.sh [build DIR | prove DIR | document DIR]" >&2; exit 2; }
	mkdir -p "$2"
	dir=$(cd "$2" && pwd)
	;;
all) dir=$(mktemp -d) ;;
*)
	echo "usage: tools/gpu-proof.sh [build DIR | prove DIR | document DIR]" >&2
	exit 2
	;;
esac
document() {
	mkdir -p "$root/docs/evidence"
	cp "$dir/gpu.md" "$root/docs/gpu.md"
	cp "$dir"/evidence/* "$root/docs/evidence/"
}
case ${1:-all} in
all) build && prove && document ;;
*) "$1" ;;
esac
