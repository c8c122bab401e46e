package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
)

// tree makes a root folder with files in it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// checkRoundTrip holds Describe to what Parse accepts.
func checkRoundTrip(t *testing.T, n artifact.Node) {
	t.Helper()
	data, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	again, err := node.Parse("described", data)
	if err != nil {
		t.Fatalf("Parse refuses what Describe wrote: %v\n%s", err, data)
	}
	// An empty list says what none says, and is left out.
	if diff := cmp.Diff(n, again, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("changed by a round trip (-described +parsed):\n%s", diff)
	}
}

func TestDescribeThisMachine(t *testing.T) {
	t.Parallel()
	n, err := node.Describe(t.Context(), node.Options{Runtimes: map[string]string{"onnxruntime": "1.30.0"}})
	if err != nil {
		t.Fatal(err)
	}
	if n.OS != runtime.GOOS || n.CPU.Arch != runtime.GOARCH || n.Source != node.SourceMachine {
		t.Errorf("os %q, arch %q, source %q", n.OS, n.CPU.Arch, n.Source)
	}
	if runtime.GOARCH == "amd64" && !slices.Contains([]string{"v1", "v2", "v3", "v4"}, n.CPU.Level) {
		t.Errorf("level %q", n.CPU.Level)
	}
	if runtime.GOOS == "linux" && n.MemoryMiB <= 0 {
		t.Errorf("memory %d MiB", n.MemoryMiB)
	}
	if n.Runtimes["onnxruntime"] != "1.30.0" {
		t.Errorf("runtimes %v: what the caller knows must win", n.Runtimes)
	}
	if !slices.IsSorted(n.CPU.Features) {
		t.Errorf("features %v are not sorted", n.CPU.Features)
	}
	for _, f := range n.CPU.Features {
		if !slices.Contains(node.FeatureNames(), f) {
			t.Errorf("feature %q is not on the list", f)
		}
	}
	checkRoundTrip(t, n)
}

// The kernel is another witness of what the processor can do.
func TestFeaturesAreThoseOfTheKernel(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip("no /proc/cpuinfo on this system")
	}
	flags := kernelFlags(string(data))
	if len(flags) == 0 {
		t.Skip("/proc/cpuinfo lists no flags")
	}
	for _, f := range describe(t, node.Options{}).CPU.Features {
		if !flags[f] {
			t.Errorf("feature %q is none of the kernel's flags", f)
		}
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	const meminfo = "MemTotal:        8388608 kB\nMemFree:  1 kB\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"unknown":       {nil, 0},
		"physical":      {map[string]string{"proc/meminfo": meminfo}, 8192},
		"another unit":  {map[string]string{"proc/meminfo": "MemTotal: 8 GB\n"}, 0},
		"negative":      {map[string]string{"proc/meminfo": "MemTotal: -1024 kB\n"}, 0},
		"the most":      {map[string]string{"proc/meminfo": "MemTotal: 9007199254740991 kB\n"}, 8796093022207},
		"one more":      {map[string]string{"proc/meminfo": "MemTotal: 9007199254740992 kB\n"}, 0},
		"overflow":      {map[string]string{"proc/meminfo": "MemTotal: 9223372036854775807 kB\n"}, 0},
		"v2, no limit":  {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 8192},
		"v2, container": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1024},
		"v2, the parent has the lowest": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "4294967296\n", "sys/fs/cgroup/a/memory.max": "2147483648\n",
		}, 2048},
		"v2, outside its namespace": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/../../x\n", "sys/fs/cgroup/x/memory.max": "1048576\n",
		}, 1},
		"v1": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "9:cpu,memory:/a\n0::/\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "536870912\n",
		}, 512},
		"v1, no limit": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 8192},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := describe(t, node.Options{Root: tree(t, tc.files)}).MemoryMiB; got != tc.want {
				t.Errorf("%d MiB, want %d", got, tc.want)
			}
		})
	}
}

func TestONNXRuntime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files   []string
		conf    map[string]string
		library string // LD_LIBRARY_PATH
		path    string // PATH
		want    string
	}{
		"none":                        {want: ""},
		"the loader's default":        {files: []string{"usr/lib/libonnxruntime.so.1.30.0", "usr/lib/libonnxruntime.so"}, want: "1.30.0"},
		"the newest, by number":       {files: []string{"usr/lib/libonnxruntime.so.1.9.0", "usr/lib/libonnxruntime.so.1.30.0"}, want: "1.30.0"},
		"a link without full version": {files: []string{"usr/lib/libonnxruntime.so.1"}, want: ""},
		"another library":             {files: []string{"usr/lib/libonnxruntime.so.1.30.0.bak", "usr/lib/libonnxruntime_providers.so.1.30.0"}, want: ""},
		"the environment before the rest": {
			files:   []string{"usr/lib/libonnxruntime.so.1.30.0", "opt/ort/libonnxruntime.so.1.24.1"},
			library: "relative::/opt/ort", want: "1.24.1",
		},
		"a folder of ld.so.conf": {
			files: []string{"opt/lib/libonnxruntime.so.1.27.0"},
			conf:  map[string]string{"etc/ld.so.conf": "include ld.so.conf.d/*.conf\n", "etc/ld.so.conf.d/a.conf": "# ours\n/opt/lib # here\n"}, want: "1.27.0",
		},
		"a circle in ld.so.conf": {conf: map[string]string{"etc/ld.so.conf": "include /etc/ld.so.conf\n"}, want: ""},
		"a virtual environment": {
			files: []string{"venv/bin/python3", "venv/lib/python3.11/site-packages/onnxruntime-1.30.0.dist-info/METADATA"},
			path:  "/nothing:/venv/bin", want: "1.30.0",
		},
		"Debian's packages": {
			files: []string{"usr/bin/python3", "usr/lib/python3/dist-packages/onnxruntime-1.24.1.dist-info/METADATA"},
			path:  "/usr/bin", want: "1.24.1",
		},
		"only the first python3": {
			files: []string{"bin/python3", "venv/bin/python3", "venv/lib/python3.11/site-packages/onnxruntime-1.30.0.dist-info/METADATA"},
			path:  "/bin:/venv/bin", want: "",
		},
		"the build for GPUs": {
			files: []string{"venv/bin/python3", "venv/lib/python3.11/site-packages/onnxruntime_gpu-1.30.0.dist-info/METADATA"},
			path:  "/venv/bin", want: "1.30.0",
		},
		"no packages without python3": {files: []string{"usr/lib/python3/dist-packages/onnxruntime-1.24.1.dist-info/METADATA"}, path: "/usr/bin", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for _, f := range tc.files {
				files[f] = "x"
			}
			for f, content := range tc.conf {
				files[f] = content
			}
			env := map[string]string{"LD_LIBRARY_PATH": tc.library, "PATH": tc.path}
			n := describe(t, node.Options{Root: tree(t, files), Getenv: func(key string) string { return env[key] }})
			if got := n.Runtimes["onnxruntime"]; got != tc.want {
				t.Errorf("onnxruntime %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEmulated(t *testing.T) {
	t.Parallel()
	own, other := "vendor_id : GenuineIntel\n", "CPU implementer : 0x41\n"
	if runtime.GOARCH == "arm64" {
		own, other = other, own
	}
	for name, tc := range map[string]struct {
		cpuinfo string
		want    bool
	}{
		"an emulator's model":       {own + "model name\t: QEMU Virtual CPU version 2.5+\n\nprocessor : 1\n", true},
		"a translator's model":      {own + "model name\t: VirtualApple @ 2.50GHz\n", true},
		"of the machine below":      {other, true},
		"a real one":                {own + "model name : Intel(R) Xeon(R) Processor\n\nmodel name : QEMU\n", false},
		"without a word about it":   {"processor : 0\n", false},
		"bytes that mean nothing":   {"\x00\xff: \n::\n", false},
		"a system without the file": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bare := slices.Contains(describe(t, node.Options{}).Notes, node.NoteEmulated)
			n := describe(t, node.Options{Root: tree(t, map[string]string{"proc/cpuinfo": tc.cpuinfo})})
			if got := slices.Contains(n.Notes, node.NoteEmulated); got != (tc.want || bare) {
				t.Errorf("emulated %t, want %t (notes %q)", got, tc.want || bare, n.Notes)
			}
		})
	}
}

func TestDescribeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := node.Describe(ctx, node.Options{Root: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// A machine proves who it is without saying its identity, and one without an identity has none.
func TestMachine(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "id")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const id = "0123456789abcdef0123456789abcdef"
	one, err := node.Machine(file(id + "\n"))
	if err != nil || len(one) != 64 || strings.Contains(one, id[:8]) {
		t.Errorf("a machine proves itself by %q, error %v", one, err)
	}
	if again, err := node.Machine(file(id)); err != nil || again != one {
		t.Errorf("the same machine proves itself by %q, error %v, want %q", again, err, one)
	}
	if other, err := node.Machine(file("1" + id[1:])); err != nil || other == one {
		t.Errorf("another machine proves itself by %q, error %v", other, err)
	}
	for name, path := range map[string]string{"a short identity": file("short"), "no file": filepath.Join(t.TempDir(), "none")} {
		if proof, err := node.Machine(path); !registry.HasCode(err, registry.CodeInvalid) || proof != "" {
			t.Errorf("%s: %q, error %v, want CodeInvalid", name, proof, err)
		}
	}
	if _, err := node.Machine(node.MachineID); err != nil {
		t.Errorf("this machine: %v", err)
	}
}
