package artifact_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// gpuTarget asks for something in every field.
func gpuTarget() artifact.Target {
	return artifact.Target{
		V: artifact.TargetVersion, Name: "h200", OS: "linux",
		CPU: artifact.TargetCPU{Arch: "amd64", Level: "v3", Features: []string{"avx2", "f16c"}},
		Accelerator: &artifact.TargetAccelerator{
			Vendor: "nvidia", Arch: "sm_90", Product: "NVIDIA-H200", Count: 2, MemoryMiB: 140000,
			Driver: &artifact.Constraint{Min: "570", Below: "600"},
		},
		Runtimes: map[string]artifact.Constraint{"cuda": {Min: "12.4", Below: "14"}, "tensorrt": {Exact: "10.13.0"}},
	}
}

// gpuNode meets gpuTarget, and no more.
func gpuNode() artifact.Node {
	device := artifact.NodeAccelerator{Vendor: "nvidia", Product: "NVIDIA-H200", Arch: "sm_90", MemoryMiB: 140000, Driver: "580.65.06"}
	return artifact.Node{
		V: 1, OS: "linux",
		CPU:          artifact.NodeCPU{Arch: "amd64", Level: "v3", Features: []string{"avx2", "f16c", "fma"}},
		Accelerators: []artifact.NodeAccelerator{device, device},
		Runtimes:     map[string]string{"cuda": "13.0", "tensorrt": "10.13.0"},
	}
}

// lines writes what does not match, a line for each.
func lines(mismatches []artifact.Mismatch) string {
	var out []string
	for _, m := range mismatches {
		out = append(out, m.String())
	}
	return strings.Join(out, "\n")
}

func TestMatchEveryField(t *testing.T) {
	t.Parallel()
	type node = *artifact.Node
	type target = *artifact.Target
	devices := func(n node, edit func(d *artifact.NodeAccelerator)) {
		for i := range n.Accelerators {
			edit(&n.Accelerators[i])
		}
	}
	for _, c := range []struct {
		name string
		edit func(t target, n node)
		want string
	}{
		{"meets all", func(target, node) {}, ""},
		{"os", func(_ target, n node) { n.OS = "windows" }, "os: needs linux, has windows"},
		{"arch", func(_ target, n node) { n.CPU.Arch = "arm64" }, "cpu.arch: needs amd64, has arm64"},
		{"level below", func(_ target, n node) { n.CPU.Level = "v2" }, "cpu.level: needs v3, has v2"},
		{"level above", func(_ target, n node) { n.CPU.Level = "v4" }, ""},
		{"level absent", func(_ target, n node) { n.CPU.Level = "" }, "cpu.level: needs v3, has none"},
		{"level unheard of", func(_ target, n node) { n.CPU.Level = "v9" }, "cpu.level: needs v3, has v9"},
		{"no level asked", func(t target, n node) { t.CPU.Level, n.CPU.Level = "", "" }, ""},
		{"feature", func(_ target, n node) { n.CPU.Features = []string{"avx2"} }, "cpu.features: needs f16c, has none"},
		{"no accelerator", func(_ target, n node) { n.Accelerators = nil }, "accelerator: needs nvidia NVIDIA-H200, has none"},
		{"no accelerator asked", func(t target, n node) { t.Accelerator, n.Accelerators = nil, nil }, ""},
		{"too few", func(_ target, n node) { n.Accelerators = n.Accelerators[:1] }, "accelerator.count: needs 2, has 1"},
		{"one asked by default", func(t target, n node) { t.Accelerator.Count, n.Accelerators = 0, n.Accelerators[:1] }, ""},
		{"enough, one of them too small", func(_ target, n node) { n.Accelerators[0].MemoryMiB = 1 }, "accelerator.count: needs 2, has 1"},
		{"enough beside another", func(_ target, n node) {
			n.Accelerators = append([]artifact.NodeAccelerator{{Vendor: "amd"}}, n.Accelerators...)
		}, ""},
		{"vendor", func(_ target, n node) { devices(n, func(d *artifact.NodeAccelerator) { d.Vendor = "amd" }) }, "accelerator.vendor: needs nvidia, has amd"},
		{"mig device for a whole one", func(_ target, n node) { devices(n, func(d *artifact.NodeAccelerator) { d.MIG = "1g.18gb" }) }, "accelerator.mig: needs none, has 1g.18gb"},
		{"whole device for a mig one", func(t target, _ node) { t.Accelerator.MIG = "1g.18gb" }, "accelerator.mig: needs 1g.18gb, has none"},
		{"same mig", func(t target, n node) {
			t.Accelerator.MIG = "1g.18gb"
			devices(n, func(d *artifact.NodeAccelerator) { d.MIG = "1g.18gb" })
		}, ""},
		{"memory", func(_ target, n node) { devices(n, func(d *artifact.NodeAccelerator) { d.MemoryMiB = 139999 }) }, "accelerator.memoryMiB: needs 140000, has 139999"},
		{"driver old", func(_ target, n node) { devices(n, func(d *artifact.NodeAccelerator) { d.Driver = "569.9" }) }, "accelerator.driver: needs >= 570 and < 600, has 569.9"},
		{"driver new", func(_ target, n node) { devices(n, func(d *artifact.NodeAccelerator) { d.Driver = "600" }) }, "accelerator.driver: needs >= 570 and < 600, has 600"},
		{"driver unknown", func(_ target, n node) { devices(n, func(d *artifact.NodeAccelerator) { d.Driver = "" }) }, "accelerator.driver: needs >= 570 and < 600, has none"},
		{"runtime absent", func(_ target, n node) { delete(n.Runtimes, "cuda") }, "runtimes.cuda: needs >= 12.4 and < 14, has none"},
		{"runtimes differ", func(_ target, n node) { n.Runtimes = map[string]string{"cuda": "14", "tensorrt": "10.13.1"} },
			"runtimes.cuda: needs >= 12.4 and < 14, has 14\nruntimes.tensorrt: needs 10.13.0, has 10.13.1"},
		{"all at once, in order", func(_ target, n node) { *n = artifact.Node{} },
			"os: needs linux, has none\ncpu.arch: needs amd64, has none\ncpu.level: needs v3, has none\ncpu.features: needs avx2, has none\ncpu.features: needs f16c, has none\naccelerator: needs nvidia NVIDIA-H200, has none\nruntimes.cuda: needs >= 12.4 and < 14, has none\nruntimes.tensorrt: needs 10.13.0, has none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tg, n := gpuTarget(), gpuNode()
			c.edit(&tg, &n)
			if got := lines(tg.Match(n, n.Runtime())); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestMatchCompatibility(t *testing.T) {
	t.Parallel()
	const (
		exact   = artifact.CompatibilityExact
		same    = artifact.CompatibilityComputeCapability
		version = artifact.CompatibilityVersionCompatible
	)
	for _, c := range []struct {
		stretch       artifact.Compatibility
		asked         string
		product, arch string
		want          string
	}{
		{"", "sm_90", "NVIDIA-H200", "sm_90", ""},
		{"", "sm_90", "NVIDIA-H100", "sm_90", "accelerator.product: needs NVIDIA-H200, has NVIDIA-H100"},
		{exact, "sm_90", "NVIDIA-H100", "sm_90", "accelerator.product: needs NVIDIA-H200, has NVIDIA-H100"},
		{exact, "sm_90", "NVIDIA-H200", "sm_100", "accelerator.arch: needs sm_90, has sm_100"},
		{same, "sm_90", "NVIDIA-H100", "sm_90", ""},
		{same, "sm_90", "NVIDIA-H100", "sm_100", "accelerator.arch: needs sm_90, has sm_100"},
		{same, "sm_90", "NVIDIA-H100", "sm_89", "accelerator.arch: needs sm_90, has sm_89"},
		{version, "sm_90", "NVIDIA-B200", "sm_100", ""},
		{version, "sm_90", "NVIDIA-L4", "sm_89", "accelerator.arch: needs sm_90, has sm_89"},
		{version, "sm_90", "NVIDIA-L4", "", "accelerator.arch: needs sm_90, has none"},
		{version, "sm_90", "NVIDIA-L4", "gfx942", "accelerator.arch: needs sm_90, has gfx942"},
		{version, "sm_90a", "NVIDIA-B200", "sm_100", "accelerator.arch: needs sm_90a, has sm_100"}, // sm_90a runs on nothing later
		{version, "gfx90a", "x", "gfx942", "accelerator.arch: needs gfx90a, has gfx942"},           // no known order
		{version, "gfx90a", "x", "gfx90a", ""},
	} {
		target, node := gpuTarget(), gpuNode()
		target.Compatibility, target.Accelerator.Arch = c.stretch, c.asked
		for i := range node.Accelerators {
			node.Accelerators[i].Product, node.Accelerators[i].Arch = c.product, c.arch
		}
		if got := lines(target.Match(node, node.Runtime())); got != c.want {
			t.Errorf("compatibility %q of %s on %s %s: got %q, want %q", c.stretch, c.asked, c.product, c.arch, got, c.want)
		}
	}
}

func TestMatchUsesTheRuntimeThatIsNamed(t *testing.T) {
	t.Parallel()
	target, node := gpuTarget(), gpuNode()
	container := artifact.Runtime{V: 1, Name: "container", Runtimes: map[string]string{"cuda": "12.4", "tensorrt": "10.12.0"}}
	if got := lines(target.Match(node, container)); got != "runtimes.tensorrt: needs 10.13.0, has 10.12.0" {
		t.Errorf("got %q, want the container's tensorrt to differ", got)
	}
	if got := target.Match(node, artifact.Runtime{}); len(got) != 2 {
		t.Errorf("the zero Runtime lacks %q, want both runtimes", lines(got))
	}
}

func TestZeroAndUnknownTargetsMatchNothing(t *testing.T) {
	t.Parallel()
	later := gpuTarget()
	later.V = 2
	for _, target := range []artifact.Target{{}, {Name: "x"}, later} {
		for _, node := range []artifact.Node{{}, gpuNode()} {
			if len(target.Match(node, node.Runtime())) == 0 {
				t.Errorf("target %+v matches node %+v", target, node)
			}
		}
	}
}

// Having more never makes a node fit less, and asking for more never makes it fit more.
func TestMatchIsMonotone(t *testing.T) {
	t.Parallel()
	features := []string{"avx2", "avx512f", "f16c"}
	rapid.Check(t, func(t *rapid.T) {
		subset := rapid.SliceOfDistinct(rapid.SampledFrom(features), func(s string) string { return s })
		level := rapid.SampledFrom([]string{"", "v1", "v2", "v3", "v4"})
		target := artifact.Target{V: 1, Name: "t", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64",
			Level: level.Draw(t, "target level"), Features: subset.Draw(t, "target features")}}
		node := artifact.Node{V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64",
			Level: level.Draw(t, "node level"), Features: subset.Draw(t, "node features")}}
		want := target.CPU.Level <= node.CPU.Level // their order is that of bytes
		for _, f := range target.CPU.Features {
			want = want && slices.Contains(node.CPU.Features, f)
		}
		lacks := target.Match(node, node.Runtime())
		if (len(lacks) == 0) != want {
			t.Fatalf("%+v on %+v lacks %q", target.CPU, node.CPU, lines(lacks))
		}
		node.CPU.Features = append(node.CPU.Features, "more")
		node.Accelerators = gpuNode().Accelerators
		if len(target.Match(node, node.Runtime())) != len(lacks) {
			t.Fatalf("a node that has more lacks something else")
		}
		target.CPU.Features = append(target.CPU.Features, "impossible")
		if len(target.Match(node, node.Runtime())) != len(lacks)+1 {
			t.Fatalf("a target that asks for more is met as before")
		}
	})
}

func TestSpecificity(t *testing.T) {
	t.Parallel()
	cpu := func(level string, features ...string) artifact.Target {
		return artifact.Target{V: 1, Name: "t", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: level, Features: features}}
	}
	anyGPU := cpu("v4", "a", "b", "c")
	anyGPU.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia", Arch: "sm_90"}
	ascending := []artifact.Target{cpu(""), cpu("v1"), cpu("v3"), cpu("v4"), cpu("v3", "avx512_vnni"), anyGPU, gpuTarget()}
	for i := 1; i < len(ascending); i++ {
		if ascending[i-1].Specificity() >= ascending[i].Specificity() {
			t.Errorf("%+v is not less specific than %+v", ascending[i-1], ascending[i])
		}
	}
}

// A target covers another if every machine that meets the other meets it, runtimes aside.
func TestTargetCovers(t *testing.T) {
	t.Parallel()
	cpu := func(level string, features ...string) artifact.Target {
		return artifact.Target{OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64", Level: level, Features: features}}
	}
	gpu := func(arch string) artifact.Target {
		t := cpu("v1")
		t.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia", Arch: arch}
		return t
	}
	mac := cpu("v1")
	mac.OS = "darwin"
	for name, c := range map[string]struct {
		a, b artifact.Target
		want bool
	}{
		"the same":        {cpu("v3"), cpu("v3"), true},
		"a lower level":   {cpu("v1"), cpu("v3"), true},
		"a higher level":  {cpu("v3"), cpu("v1"), false},
		"a feature less":  {cpu("v3"), cpu("v3", "avx512f"), true},
		"a feature more":  {cpu("v3", "avx512f"), cpu("v3"), false},
		"another system":  {mac, cpu("v1"), false},
		"no accelerator":  {cpu("v1"), gpu("sm_90"), true},
		"an accelerator":  {gpu("sm_90"), cpu("v1"), false},
		"the same device": {gpu("sm_90"), gpu("sm_90"), true},
		"another device":  {gpu("sm_80"), gpu("sm_90"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.a.Covers(c.b); got != c.want {
				t.Errorf("covers: %t, want %t", got, c.want)
			}
		})
	}
}
