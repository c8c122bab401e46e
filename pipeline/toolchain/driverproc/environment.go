package driverproc

import (
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// fixedEnvironment is what every driver gets in place of our own environment: no keys, no
// proxies, no paths to other libraries. Variables are fixed if they could change the results or
// their order, or make a tool look for devices or use the network.
var fixedEnvironment = [...]string{
	"PATH=/usr/bin:/bin",
	"LC_ALL=C.UTF-8",
	"TZ=UTC",
	"SOURCE_DATE_EPOCH=315532800", // 1980, the earliest time that a zip file can store
	"PYTHONHASHSEED=0",
	"PYTHONDONTWRITEBYTECODE=1",
	"OMP_NUM_THREADS=1",
	"OPENBLAS_NUM_THREADS=1",
	"CUDA_VISIBLE_DEVICES=",
	"HF_HUB_OFFLINE=1",
	"TRANSFORMERS_OFFLINE=1",
	"TF_ENABLE_ONEDNN_OPTS=0",
	"TF_CPP_MIN_LOG_LEVEL=2",
	"ORT_DISABLE_TELEMETRY=1",
}

// environment returns the whole environment of a driver that may use scratch.
func environment(scratch string) []string {
	return append(fixedEnvironment[:len(fixedEnvironment):len(fixedEnvironment)], "HOME="+scratch, "TMPDIR="+scratch)
}

// CodeDigest returns the digest of a driver's code, its environment and the protocol, as
// Identity.Code of package toolchain defines it.
func CodeDigest(sources ...[]byte) registry.Digest {
	var parts []string
	for _, source := range sources {
		parts = append(parts, digest.FromBytes(source).String())
	}
	parts = append(append(parts, Protocol), fixedEnvironment[:]...)
	return digest.FromString(strings.Join(parts, "\n"))
}
