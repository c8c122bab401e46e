package cluster_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node/cluster"
)

// question is the input of testdata/selectors.
type question struct {
	Driver    string   `json:"driver"`
	Selectors []string `json:"selectors"`
	Device    object   `json:"device"`

	target   artifact.Target
	admitted bool // by our own rules
}

// drawDevice draws a device as NVIDIA's driver publishes it, sometimes without a fact.
func drawDevice(t *rapid.T) object {
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	attributes := object{
		"type": object{"string": "gpu"}, "productName": object{"string": pick("product", "NVIDIA L4", "NVIDIA H100 80GB HBM3")},
		"cudaComputeCapability": object{"version": pick("capability", "8.0.0", "8.9.0", "9.0.0", "10.0.0", "10.3.0")},
		"driverVersion":         object{"version": pick("driver", "580.65.6", "580.65.7", "580.105.8", "579.9.0")},
	}
	if profile := pick("profile", "", "", "1g.10gb", "3g.40gb"); profile != "" {
		attributes["type"], attributes["profile"] = object{"string": "mig"}, object{"string": profile}
	}
	d := object{"name": "d", "attributes": attributes, "capacity": object{"memory": object{"value": pick("memory", "16777215Ki", "16Gi", "16385Mi")}}}
	switch pick("without", "", "", "", "driverVersion", "memory", "productName") {
	case "driverVersion":
		delete(attributes, "driverVersion")
	case "memory":
		delete(d, "capacity")
	case "productName":
		delete(attributes, "productName")
	}
	return d
}

func drawDeviceTarget(t *rapid.T) artifact.Target {
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	a := &artifact.TargetAccelerator{
		Vendor: "nvidia", Product: pick("product", "", "NVIDIA-L4", "NVIDIA-H100-80GB-HBM3"), Arch: pick("arch", "", "sm_80", "sm_90", "sm_100", "sm_103"),
		MIG: pick("mig", "", "", "1g.10gb"), MemoryMiB: int64(rapid.SampledFrom([]int{0, 16383, 16384, 16385}).Draw(t, "memory")),
	}
	versions := []string{"", "580", "580.65.06", "580.65.7", "580.105.08"}
	c := artifact.Constraint{Min: pick("min", versions...), Below: pick("below", "", "", "580.105.08", "581")}
	if pick("exactly", "", "", "yes") != "" {
		c = artifact.Constraint{Exact: pick("exact", versions[1:]...)}
	}
	if c.Validate() == nil {
		a.Driver = &c
	}
	return artifact.Target{
		V: 1, Name: "t", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64"}, Accelerator: a,
		Compatibility: artifact.Compatibility(pick("compatibility", "", "exact", "same-compute-capability", "version-compatible")),
	}
}

// Devices that a target admits by our own rules are those that the scheduler admits by the selectors of the claim, and
// no selector fails on a device without a fact.
func TestSelectorsSelectWhatTheTargetMatches(t *testing.T) {
	t.Parallel()
	program := selectorsProgram(t)
	var questions []question
	rapid.Check(t, func(t *rapid.T) {
		target := drawDeviceTarget(t)
		claim, err := cluster.ClaimOf(target)
		if err != nil || claim.Unexpressed != nil {
			t.Fatalf("%+v: %v, unexpressed %v", target.Accelerator, err, claim.Unexpressed)
		}
		for range 20 {
			q := question{Driver: "gpu.nvidia.com", Selectors: claim.Selectors, Device: drawDevice(t), target: target}
			s := slice("a", 0)
			s["spec"].(object)["devices"] = []object{q.Device}
			var fleet cluster.Fleet
			if err := fleet.Add("drawn", strings.NewReader(list(aNode("a"), s))); err != nil {
				t.Fatal(err)
			}
			n, err := fleet.Describe("a")
			if err != nil {
				t.Fatal(err)
			}
			q.admitted = len(target.Match(n, n.Runtime())) == 0
			questions = append(questions, q)
		}
	})
	var in bytes.Buffer
	for _, q := range questions {
		if err := json.NewEncoder(&in).Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(bytes.NewReader(out))
	outcomes := map[bool]int{}
	for _, q := range questions {
		var a struct {
			Matches bool
			Error   string
		}
		if err := answers.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if a.Error != "" || a.Matches != q.admitted {
			t.Fatalf("device %v, selectors %s: the scheduler answers %v %s; our rules %v", q.Device, strings.Join(q.Selectors, "\n"), a.Matches, a.Error, q.admitted)
		}
		outcomes[a.Matches]++
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("%d devices were admitted and %d refused: the drawn ones show nothing", outcomes[true], outcomes[false])
	}
}

// selectorsProgram builds testdata/selectors, which is a module of its own, because the code of the scheduler needs many.
func selectorsProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "selectors")
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOFLAGS=") || strings.HasPrefix(v, "GOWORK=") })
	for _, args := range [][]string{{"mod", "download"}, {"build", "-o", program, "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = filepath.Join("testdata", "selectors"), append(env, "GOFLAGS=-mod=readonly -buildvcs=false -trimpath", "GOWORK=off", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); errors.As(err, &exit) && args[0] == "mod" {
			t.Skipf("no proxy for modules can be reached: %s", out)
		}
		if err != nil {
			t.Fatal(fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out))
		}
	}
	return program
}
