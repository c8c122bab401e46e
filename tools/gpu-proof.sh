#!/bin/sh
# Proves engines for GPUs, with the commands that a user has.
#
#   tools/gpu-proof.sh build DIR    on any machine that has the toolchain iree: makes engines, into DIR
#   tools/gpu-proof.sh prove DIR    on a machine with a GPU: verifies, promotes and pulls them, shows what
#                                   is refused, and writes DIR/gpu.md and DIR/evidence
#   tools/gpu-proof.sh host DIR     on a machine with a GPU whose Python, PYTHON, has PyTorch and JAX for it: registers that Python
#                                   as toolchains, builds with them, does the same as prove, and writes DIR/host
#   tools/gpu-proof.sh tensorrt DIR on a machine with a GPU, trtexec on PATH and a Python, PYTHON, with tensorrt, cuda-python, numpy and
#                                   onnxruntime: builds by examples/toolchains/tensorrt.yaml, verifies with its runner, promotes, shows
#                                   what is refused, and writes DIR/tensorrt
#   tools/gpu-proof.sh document DIR copies what was written into docs, and prints nothing else
#   tools/gpu-proof.sh              build, prove and document, in a new folder
#
# MLPROMOTE is the program, PYTHON a Python that has the packages onnxruntime and iree-base-runtime in the
# versions of the lock files; without it the installs of mlpromote are used. DRY=1 lets host build for the processor where there is
# no GPU, and tensorrt without one, which shows that the steps work, and nothing else. LIMIT is how many seconds host may take: what does not fit is left out.
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
	cat >"${2:-$dir/data}/environments.yaml" <<EOF
version: 1
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

# of NAME TOOLCHAIN MORE: a target for the GPU, or in a dry run for the processor.
of() {
	if [ -n "$arch" ]; then
		echo "  - {name: $1, accelerator: {arch: $arch}, toolchain: $2${3:-}}"
	else
		echo "  - {name: $1, os: linux, cpu: {arch: amd64, level: v3}, toolchain: $2}"
	fi
}

# program MODEL PROGRAM TARGETS: a folder with a spec for a program of PyTorch.
program() {
	[ "$1" = "$2" ] || cp -R "$dir/$2" "$dir/$1"
	cat >"$dir/$1/mlpromote.yaml" <<EOF
model: gpu/$1
version: 1.0.0
source: {path: model.pt2, format: torch-export, trust: {pickle: true}}
cases: {path: cases/}
variants: [fp32]
targets:
$3
limits: {preset: default}
EOF
}

# while_time STEP...: a step, if there is time for it.
while_time() {
	if [ $(($(date +%s) - began)) -lt "${LIMIT:-3600}" ]; then
		step "$@"
	else
		say "$1 is left out: no time is left"
	fi
}

# make_in MODEL FLAGS...: builds it, in a data directory of its own, so that several are built at a time.
make_in() {
	model=$1
	shift
	(cd "$dir/$model" && "$mlpromote" build --data "$dir/data-$model" "$@")
}

# beside STEP...: a step that others need not wait for, but in a dry run, whose machine may be small.
beside() {
	step "$@" &
	[ -z "${DRY:-}" ] || wait
}

# on MODEL COMMAND...: a command on the data directory of a model.
on() {
	data=$dir/data-$1
	shift
	"$mlpromote" "$@" --data "$data"
}

# faulty_python: a Python like PYTHON, which changes a weight of what it compiles. The sandbox shows it the folders that the two
# files pyvenv.cfg name.
faulty_python() {
	mkdir -p "$dir/fault/bin"
	cp "$proof/torchfault.py" "$dir/fault/sitecustomize.py"
	printf '#!/bin/sh\nPYTHONPATH=%s exec %s "$@"\n' "$dir/fault" "$python" >"$dir/fault/bin/python3"
	chmod +x "$dir/fault/bin/python3"
	echo "home = $(dirname "$python")" >"$dir/fault/pyvenv.cfg"
	echo "home = $("$python" -c 'import sys; print(sys.base_prefix)')/bin" >"$dir/fault/bin/pyvenv.cfg"
}

host() {
	began=$(date +%s)
	python=${PYTHON:-$(command -v python3)}
	dir="$dir/host"
	rm -rf "$dir"
	mkdir -p "$dir/results"
	export MLPROMOTE_INSTALLS="$dir/installs" MLPROMOTE_CACHE="$dir/cache"
	step node "$mlpromote" node describe --output json
	arch=$(python3 -c 'import json, sys; print(next((a["arch"] for a in json.load(sys.stdin).get("accelerators", [])), ""))' <"$dir/results/node.out")
	if [ -z "$arch" ] && [ -z "${DRY:-}" ]; then
		echo "gpu-proof: this machine has no GPU that mlpromote sees: nvidia-smi must list one" >&2
		exit 6
	fi
	for toolchain in onnxruntime torch torch-inductor xla; do
		step "register-$toolchain" "$mlpromote" toolchain install "$toolchain" --python "$python"
	done
	step register-unknown "$mlpromote" toolchain install tensorflow --python "$python"
	step list "$mlpromote" toolchain list
	step programs "$python" "$proof/programs.py" "$dir"
	program cnn cnn "$(of inductor torch-inductor ', load: {env: {NVIDIA_TF32_OVERRIDE: "0"}, required: true}')$newline$(of xla xla)"
	program transformer transformer "$(of inductor torch-inductor)$newline$(of xla xla)"
	program faulty transformer "$(of inductor torch-inductor)$newline$(of xla xla)"
	program elsewhere cnn '  - {name: newer, accelerator: {arch: sm_120}, toolchain: xla}'
	program older cnn '  - {name: older, accelerator: {arch: sm_80}, toolchain: torch-inductor}'
	faulty_python
	beside build-transformer make_in transformer --verbose
	beside build-cnn make_in cnn --verbose
	beside build-older make_in older
	beside build-elsewhere make_in elsewhere
	export MLPROMOTE_CACHE="$dir/cache-faulty" # else the engines that the other builds compiled would be taken
	beside build-faulty make_in faulty --python "torch-inductor=$dir/fault/bin/python3" --python "xla=$dir/fault/bin/python3"
	export MLPROMOTE_CACHE="$dir/cache"
	wait
	step verify-transformer-1 on transformer verify staging/gpu/transformer:1.0.0 --output json --verbose
	step check on transformer report check staging/gpu/transformer:1.0.0 --save "$dir/kept"
	python3 "$proof/runtime.py" "$dir/results/verify-transformer-1.out" >"$dir/results/here.json"
	for model in transformer faulty cnn; do
		mkdir -p "$dir/data-$model"
		environments here "$dir/data-$model"
		step "type-$model" on "$model" node-type put here "$dir/results/here.json"
	done
	step promote-transformer on transformer promote staging/gpu/transformer:1.0.0
	for runtime in torch-inductor xla; do
		python3 "$proof/runtime.py" "$dir/results/verify-transformer-1.out" "$runtime" >"$dir/results/here-$runtime.json"
		step "pull-$runtime" on transformer pull gpu/transformer --env prod --node "$dir/results/here-$runtime.json" -o "$dir/pulled-$runtime"
		step "load-$runtime" "$python" "$proof/load.py" "$dir/pulled-$runtime" "$dir/transformer/model.pt2" patches "$dir/transformer/cases/cases-00000.safetensors"
	done
	step trust on transformer trust "$dir/pulled-torch-inductor"
	cp -R "$dir/data-transformer" "$dir/data-tampered"
	step tamper python3 "$proof/tamper.py" "$dir/results/verify-transformer-1.out" "$dir/data-tampered" all
	step verify-tampered on tampered verify staging/gpu/transformer:1.0.0
	site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
	mkdir "$site/another-1.0.dist-info"
	step verify-changed on transformer verify staging/gpu/transformer:1.0.0
	rmdir "$site/another-1.0.dist-info"
	step verify-elsewhere on elsewhere verify staging/gpu/elsewhere:1.0.0 --output json
	while_time verify-faulty-1 on faulty verify staging/gpu/faulty:1.0.0 --output json --sensitivity 0
	while_time promote-faulty on faulty promote staging/gpu/faulty:1.0.0
	while_time verify-cnn-1 on cnn verify staging/gpu/cnn:1.0.0 --output json --verbose
	while_time promote-cnn on cnn promote staging/gpu/cnn:1.0.0
	for round in 2 3; do
		for model in transformer cnn; do
			while_time "verify-$model-$round" on "$model" verify "staging/gpu/$model:1.0.0" --output json
		done
	done
	while_time again make_in transformer --check-reproducible --output json
	getconf _NPROCESSORS_ONLN >"$dir/results/processors.out"
	nvidia-smi --query-gpu=name,compute_cap,memory.total,driver_version,clocks.max.sm,clocks.max.mem,persistence_mode --format=csv,noheader >"$dir/results/nvidia-smi.out" 2>&1 || true
	echo "$(($(date +%s) - began))" >"$dir/results/seconds.out"
	python3 "$proof/hostpage.py" "$dir"
}

# within: what a manifest of TensorRT is in this folder. In a dry run its engines are for no accelerator.
within() {
	sed "s|^executable: .*|executable: $(command -v trtexec)|
		s|/opt/mlpromote/runners|$dir/runners|; s|/opt/tensorrt/bin/python|$python|
		${DRY:+/^tied_to:/d; /^  device:/d; s/^  exact_runtime: .*/  exact_runtime: false/}" "$root/examples/toolchains/tensorrt.yaml"
}

# It starts no step after nine minutes: a lent machine may go back after ten.
tensorrt() {
	began=$(date +%s)
	python=${PYTHON:-$(command -v python3)}
	dir="$dir/tensorrt"
	rm -rf "$dir"
	mkdir -p "$dir/results" "$dir/runners" "$dir/toolchains" "$dir/data"
	export MLPROMOTE_INSTALLS="$dir/installs" MLPROMOTE_CACHE="$dir/cache" MLPROMOTE_DATA="$dir/data" MLPROMOTE_TOOLCHAINS="$dir/toolchains" LIMIT="${LIMIT:-540}"
	command -v trtexec >/dev/null || { echo "gpu-proof: trtexec is not on PATH: install TensorRT" >&2; exit 1; }
	step node "$mlpromote" node describe --output json
	# shellcheck disable=SC2046 # two words
	set -- $(python3 -c 'import json, sys; print(*next(((a["arch"], a["product"]) for a in json.load(sys.stdin).get("accelerators", [])), ()))' <"$dir/results/node.out")
	if [ $# -ne 2 ] && [ -z "${DRY:-}" ]; then
		echo "gpu-proof: this machine has no GPU that mlpromote sees: nvidia-smi must list one" >&2
		exit 6
	fi
	arch=${1:-} product=${2:-} other=sm_80
	[ "$arch" != sm_80 ] || other=sm_90
	cp "$root/examples/toolchains/runners/run_tensorrt.py" "$dir/runners"
	within >"$dir/toolchains/tensorrt.yaml"
	step register-onnxruntime "$mlpromote" toolchain install onnxruntime --python "$python"
	step conformance "$mlpromote" toolchain check "$dir/toolchains/tensorrt.yaml" ${arch:+--set "accelerator.arch=$arch" --set "accelerator.product=$product"}
	CARD="  - {name: card, os: linux, cpu: {arch: amd64}, toolchain: tensorrt, variants: [fp32]${arch:+, accelerator: {arch: $arch, product: $product\}}}"
	example digits digits "$CARD"
	example digits elsewhere "  - {name: other, os: linux, cpu: {arch: amd64}, toolchain: tensorrt, variants: [fp32], accelerator: {arch: $other, product: another}}"
	for model in digits elsewhere; do # trtexec makes 1 of an open batch
		echo 'shapes: {batch: 1}' >>"$dir/$model/mlpromote.yaml"
	done
	while_time build sh -c "cd '$dir/digits' && '$mlpromote' build --verbose"
	while_time build-elsewhere sh -c "cd '$dir/elsewhere' && '$mlpromote' build"
	while_time verify "$mlpromote" verify staging/gpu/digits:1.0.0 --output json --verbose
	while_time check "$mlpromote" report check staging/gpu/digits:1.0.0 --save "$dir/kept"
	python3 "$proof/runtime.py" "$dir/results/verify.out" >"$dir/results/here.json"
	sed "s/${arch:-no such arch}/$other/" "$dir/results/here.json" >"$dir/results/other.json"
	while_time type "$mlpromote" node-type put here "$dir/results/here.json"
	environments here
	while_time promote "$mlpromote" promote staging/gpu/digits:1.0.0
	while_time pull "$mlpromote" pull gpu/digits --env prod --node "$dir/results/here.json" -o "$dir/pulled"
	while_time resolve-elsewhere "$mlpromote" resolve gpu/digits --env prod --node "$dir/results/other.json" --explain
	cp -R "$dir/data" "$dir/tampered"
	step tamper python3 "$proof/tamper.py" "$dir/results/verify.out" "$dir/tampered" all
	while_time verify-tampered "$mlpromote" verify staging/gpu/digits:1.0.0 --data "$dir/tampered"
	{
		trtexec --help 2>&1 | sed -n 's/.*\[TensorRT v\([0-9]*\)\].*/trtexec prints version \1. /p' | head -n 1
		"$python" -c 'import tensorrt; print("The package tensorrt has version", tensorrt.__version__ + ".")'
		nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader | sed 's/.*/GPU: &./'
	} >"$dir/results/versions.out" 2>/dev/null || true
	echo "$(($(date +%s) - began))" >"$dir/results/seconds.out"
	python3 "$proof/tensorrtpage.py" "$dir"
}

usage="usage: tools/gpu-proof.sh [build DIR | prove DIR | host DIR | tensorrt DIR | document DIR]"
case ${1:-all} in
build | prove | host | tensorrt | document)
	[ $# -eq 2 ] || { echo "$usage" >&2; exit 2; }
	mkdir -p "$2"
	dir=$(cd "$2" && pwd)
	;;
all) dir=$(mktemp -d) ;;
*)
	echo "$usage" >&2
	exit 2
	;;
esac
document() {
	mkdir -p "$root/docs/evidence"
	if [ -e "$dir/gpu.md" ]; then
		for part in host tensorrt; do # they stay as they are
			python3 "$proof/section.py" "$part" "$root/docs/gpu.md" >"$dir/kept-$part.md"
		done
		cp "$dir/gpu.md" "$root/docs/gpu.md"
		for part in host tensorrt; do
			python3 "$proof/section.py" "$part" "$root/docs/gpu.md" "$dir/kept-$part.md"
		done
		cp "$dir"/evidence/* "$root/docs/evidence/"
	fi
	for part in host tensorrt; do
		if [ -e "$dir/$part/$part.md" ]; then
			python3 "$proof/section.py" "$part" "$root/docs/gpu.md" "$dir/$part/$part.md"
			cp "$dir/$part"/evidence/* "$root/docs/evidence/"
		fi
	done
}
case ${1:-all} in
all) build && prove && document ;;
*) "$1" ;;
esac
