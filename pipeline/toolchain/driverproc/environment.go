package driverproc

import (
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
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

// threadVariables pin the numbers of threads of libraries. A run that loads engines as a node
// does is without them.
var threadVariables = []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}

// loadEnvironment is what a run of engines changes in the environment of its driver.
type loadEnvironment struct {
	plain bool              // some engine is loaded as a node does
	set   map[string]string // by load profiles
}

func loadOf(job toolchain.Job) loadEnvironment {
	if job.Run == nil {
		return loadEnvironment{}
	}
	plain := slices.ContainsFunc(job.Run.Engines, func(e toolchain.RunEngine) bool { return e.Load != nil })
	return loadEnvironment{plain, job.Run.Env}
}

// environment returns the whole environment of a driver that may use scratch.
func environment(scratch string, load loadEnvironment) []string {
	var all []string
	for _, variable := range fixedEnvironment {
		name, _, _ := strings.Cut(variable, "=")
		if _, set := load.set[name]; !set && !(load.plain && slices.Contains(threadVariables, name)) {
			all = append(all, variable)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(load.set)) {
		all = append(all, name+"="+load.set[name])
	}
	return append(all, "HOME="+scratch, "TMPDIR="+scratch)
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

// GoCodeDigest returns the digest of the code of a driver in Go: of the libraries with their versions, and
// of the Go files of its packages, without tests.
func GoCodeDigest(libraries string, packages ...fs.FS) (registry.Digest, error) {
	parts := [][]byte{[]byte(libraries)}
	for _, files := range packages {
		err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(files, path)
			parts = append(parts, []byte(path), text)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return CodeDigest(parts...), nil
}
