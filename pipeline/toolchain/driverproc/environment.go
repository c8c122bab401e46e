package driverproc

import (
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// fixedEnvironment is what every driver sees, and nothing of our own environment:
// no keys, no proxies, no paths to other libraries. What can make a tool compute or
// order things differently, look for devices or for the network, is pinned.
var fixedEnvironment = [...]string{
	"PATH=/usr/bin:/bin",
	"LC_ALL=C.UTF-8",
	"TZ=UTC",
	"SOURCE_DATE_EPOCH=315532800", // 1980, the first moment that a zip file can hold
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

// environment is the whole environment of a driver that may use scratch.
func environment(scratch string) []string {
	return append(fixedEnvironment[:len(fixedEnvironment):len(fixedEnvironment)], "HOME="+scratch, "TMPDIR="+scratch)
}

// CodeDigest is the digest of a driver's own code together with the environment
// that it runs in and the protocol, as an Identity of package toolchain names it.
func CodeDigest(sources ...[]byte) registry.Digest {
	var parts []string
	for _, source := range sources {
		parts = append(parts, digest.FromBytes(source).String())
	}
	parts = append(append(parts, Protocol), fixedEnvironment[:]...)
	return digest.FromString(strings.Join(parts, "\n"))
}
