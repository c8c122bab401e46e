package cluster_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/node/cluster"
)

type object = map[string]any

// aNode is a Node of the API with the labels that discovery gives it, and with more.
func aNode(name string, more ...string) object {
	labels := map[string]string{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name}
	for _, level := range []string{"X86_64_V1", "X86_64_V2", "X86_64_V3", "X86_64_V4", "AVX512VNNI"} {
		labels["feature.node.kubernetes.io/cpu-cpuid."+level] = "true"
	}
	for i := 0; i < len(more); i += 2 {
		if labels[more[i]] = more[i+1]; more[i+1] == "" {
			delete(labels, more[i])
		}
	}
	return object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name, "labels": labels}, "status": object{"capacity": object{"cpu": "16"}}}
}

// h100 has the labels of GPU feature discovery.
func h100(name string, more ...string) object {
	return aNode(name, append([]string{
		"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.compute.major", "9", "nvidia.com/gpu.compute.minor", "0",
		"nvidia.com/gpu.memory", "81559", "nvidia.com/gpu.count", "1", "nvidia.com/cuda.driver-version.full", "580.105.08",
	}, more...)...)
}

// slice is a ResourceSlice of NVIDIA's driver with so many devices.
func slice(nodeName string, count int) object {
	var devices []object
	for i := range count {
		devices = append(devices, device(fmt.Sprintf("gpu-%d", i)))
	}
	return object{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": object{"name": nodeName + "-gpu"}, "spec": object{
		"driver": "gpu.nvidia.com", "nodeName": nodeName, "pool": object{"name": nodeName, "generation": 1, "resourceSliceCount": 1}, "devices": devices,
	}}
}

func device(name string) object {
	return object{
		"name": name, "capacity": object{"memory": object{"value": "81559Mi"}},
		"attributes": object{
			"type": object{"string": "gpu"}, "productName": object{"string": "NVIDIA H100 80GB HBM3"}, "architecture": object{"string": "Hopper"},
			"cudaComputeCapability": object{"version": "9.0.0"}, "driverVersion": object{"version": "580.105.8"},
		},
	}
}

func list(items ...object) string {
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func read(t *testing.T, inputs ...string) *cluster.Fleet {
	t.Helper()
	f := &cluster.Fleet{}
	for _, text := range inputs {
		if err := f.Add("nodes.json", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// summary is what a group says, in one line.
func summary(g cluster.Group) string {
	text := g.Name + " = " + strings.Join(g.Nodes, " ")
	for _, m := range g.Missing {
		text += "; lacks " + m.Fact
	}
	return text
}

func summaries(r cluster.Report) (all []string) {
	for _, g := range r.Groups {
		all = append(all, summary(g))
	}
	return all
}

func TestGroups(t *testing.T) {
	t.Parallel()
	const cpuid = "feature.node.kubernetes.io/cpu-cpuid."
	for name, c := range map[string]struct {
		objects []object
		want    []string
	}{
		"none": {nil, nil},
		"alike but for labels that no target asks for": {
			[]object{aNode("a", "zone", "1"), aNode("b", "zone", "2", "feature.node.kubernetes.io/cpu-model.vendor_id", "AMD")}, []string{"amd64-v4 = a b"},
		},
		"by labels and by devices": {[]object{h100("a"), slice("b", 1), aNode("b"), slice("c", 1), h100("c")}, []string{"h100-80gb-amd64-v4 = a b c"}},
		"by count":                 {[]object{h100("a"), h100("b", "nvidia.com/gpu.count", "8")}, []string{"h100-80gb-amd64-v4 = a", "h100-80gb-x8-amd64-v4 = b"}},
		"by driver": {
			[]object{h100("a"), h100("b"), h100("c", "nvidia.com/cuda.driver-version.full", "570.1")},
			[]string{"h100-80gb-amd64-v4-driver-580.105.8 = a b", "h100-80gb-amd64-v4-driver-570.1 = c"},
		},
		"by memory": {
			[]object{h100("a"), h100("b", "nvidia.com/gpu.memory", "40000")},
			[]string{"h100-80gb-amd64-v4-39gb = b", "h100-80gb-amd64-v4-80gb = a"},
		},
		"by a feature": {
			[]object{aNode("a"), aNode("b", cpuid+"AMXINT8", "true")}, []string{"amd64-v4-0adc74 = a", "amd64-v4-362c0a = b"},
		},
		"arm": {[]object{aNode("a", "kubernetes.io/arch", "arm64")}, []string{"arm64 = a"}},
		"MIG": {
			[]object{h100("a", "nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "nvidia.com/gpu.count", "7")},
			[]string{"h100-80gb-1g.10gb-x7-amd64-v4 = a"},
		},
		"without Node feature discovery": {
			[]object{aNode("a", cpuid+"X86_64_V1", "", cpuid+"X86_64_V2", "", cpuid+"X86_64_V3", "", cpuid+"X86_64_V4", "", cpuid+"AVX512VNNI", "")},
			[]string{"amd64-v1 = a; lacks cpu.level; lacks cpu.features"},
		},
		"with an old one": {
			[]object{aNode("a", cpuid+"X86_64_V1", "", cpuid+"X86_64_V2", "", cpuid+"X86_64_V3", "", cpuid+"X86_64_V4", "")},
			[]string{"amd64-v1 = a; lacks cpu.level"},
		},
		"a GPU that nothing describes": {
			[]object{aNode("a", "feature.node.kubernetes.io/pci-0302_10de.present", "true")}, []string{"amd64-v4 = a; lacks accelerators"},
		},
		"a GPU of AMD without its driver": {
			[]object{aNode("a", "feature.node.kubernetes.io/pci-0380_1002.present", "true")}, []string{"amd64-v4 = a; lacks accelerators"},
		},
		"no GPU but another device": {[]object{aNode("a", "feature.node.kubernetes.io/pci-0200_10de.present", "true")}, []string{"amd64-v4 = a"}},
		"a GPU without a driver version": {
			[]object{h100("a", "nvidia.com/cuda.driver-version.full", "")}, []string{"h100-80gb-amd64-v4 = a; lacks accelerator.driver"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, summaries(read(t, list(c.objects...)).Group(nil))); diff != "" {
				t.Error(diff)
			}
			slices.Reverse(c.objects)
			if diff := cmp.Diff(c.want, summaries(read(t, list(c.objects...)).Group(nil))); diff != "" {
				t.Errorf("in the reverse order: %s", diff)
			}
		})
	}
}

// Devices of a driver are described as nvidia-smi describes them, and version numbers are compared as numbers.
func TestDevices(t *testing.T) {
	t.Parallel()
	want := artifact.NodeAccelerator{Vendor: "nvidia", Product: "NVIDIA-H100-80GB-HBM3", Arch: "sm_90", MemoryMiB: 81559, Driver: "580.105.8"}
	labelled := want
	labelled.Driver = "580.105.08"
	mig := want
	mig.MIG, mig.MemoryMiB = "1g.10gb", 9728
	change := func(more object) object {
		s := slice("a", 1)
		maps.Copy(s["spec"].(object)["devices"].([]object)[0]["attributes"].(object), more)
		return s
	}
	static := change(object{"type": object{"string": "mig"}, "profile": object{"string": "1g.10gb"}})
	static["spec"].(object)["devices"].([]object)[0]["capacity"] = object{"memory": object{"value": "10200547328"}}
	dynamic := change(object{"type": object{"string": "mig"}, "profile": object{"string": "1g.10gb"}})
	dynamic["spec"].(object)["devices"].([]object)[0]["consumesCounters"] = []object{{"counterSet": "gpu-0"}}
	amd := slice("a", 1)
	amd["spec"].(object)["driver"] = "gpu.amd.com"
	amd["spec"].(object)["devices"] = []object{{
		"name": "gpu-0-128", "capacity": object{"memory": object{"value": "196592Mi"}},
		"attributes": object{"type": object{"string": "amdgpu"}, "productName": object{"string": "AMD_Instinct_MI300X_OAM"}, "gpu.amd.com/driverVersion": object{"version": "6.12.12"}},
	}}
	intel := slice("a", 1)
	intel["spec"].(object)["driver"] = "gpu.intel.com"
	intel["spec"].(object)["devices"] = []object{{
		"name": "0000-03-00-0", "capacity": object{"memory": object{"value": "48Gi"}},
		"attributes": object{"model": object{"string": "Data Center GPU Max 1100"}, "family": object{"string": "Max"}},
	}}
	network := slice("a", 1)
	network["spec"].(object)["driver"] = "dra.net"
	older := slice("a", 4)
	older["metadata"].(object)["name"] = "older"
	older["spec"].(object)["pool"].(object)["generation"] = 0
	for name, c := range map[string]struct {
		objects []object
		want    []artifact.NodeAccelerator
	}{
		"devices alone":              {[]object{aNode("a"), slice("a", 2)}, []artifact.NodeAccelerator{want, want}},
		"the spelling of the label":  {[]object{h100("a"), slice("a", 1)}, []artifact.NodeAccelerator{labelled}},
		"a partition":                {[]object{aNode("a"), static}, []artifact.NodeAccelerator{mig}},
		"a partition on demand":      {[]object{aNode("a"), dynamic}, nil},
		"a device for machines":      {[]object{aNode("a"), change(object{"type": object{"string": "vfio"}})}, nil},
		"a slice of an earlier pool": {[]object{aNode("a"), older, slice("a", 1)}, []artifact.NodeAccelerator{want}},
		"another driver":             {[]object{aNode("a"), network}, nil},
		"AMD": {[]object{aNode("a"), amd}, []artifact.NodeAccelerator{
			{Vendor: "amd", Product: "AMD_Instinct_MI300X_OAM", MemoryMiB: 196592, Driver: "6.12.12"},
		}},
		"Intel": {[]object{aNode("a"), intel}, []artifact.NodeAccelerator{{Vendor: "intel", Product: "Data-Center-GPU-Max-1100", MemoryMiB: 49152}}},
	} {
		got, err := read(t, list(c.objects...)).Describe("a")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got.Accelerators); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		text, err := json.Marshal(got)
		if err == nil {
			_, err = node.Parse(name, text)
		}
		if err != nil {
			t.Errorf("%s: node-type put does not read the document: %v", name, err)
		}
	}
}

// A node or slice that cannot be used is named, and does not hide the others.
func TestUnread(t *testing.T) {
	t.Parallel()
	wrong := slice("b", 1)
	wrong["spec"].(object)["devices"].([]object)[0]["attributes"].(object)["cudaComputeCapability"] = object{"version": "nine"}
	half := slice("c", 1)
	half["spec"].(object)["pool"].(object)["resourceSliceCount"] = 2
	everywhere := slice("d", 1)
	delete(everywhere["spec"].(object), "nodeName")
	text := list(aNode("a"), aNode("b"), wrong, aNode("c"), half, everywhere, slice("e", 1), aNode("f", "kubernetes.io/arch", ""))
	r := read(t, text).Group(nil)
	if diff := cmp.Diff([]string{"amd64-v4 = a"}, summaries(r)); diff != "" {
		t.Error(diff)
	}
	for i, want := range []string{"ResourceSlice d-gpu: no single node", "ResourceSlice e-gpu: missing: e", "node b: cudaComputeCapability", "node c: 1 of 2", "node f: kubernetes.io/arch"} {
		object, why, _ := strings.Cut(want, ": ")
		if i >= len(r.Unread) || r.Unread[i].Object != object || !strings.Contains(r.Unread[i].Why, why) {
			t.Errorf("%d: %+v, want %s", i, r.Unread, want)
		}
	}
	if _, err := read(t, text).Describe("b"); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("describe b: %v, want CodeInvalid", err)
	}
	if _, err := read(t, text).Describe("z"); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("describe z: %v, want CodeNotFound", err)
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	r := read(t, list(h100("a", "nvidia.com/cuda.driver-version.full", "570.86.15"), slice("a", 2), h100("b"), slice("b", 2))).Group(nil)
	want := []cluster.Conflict{{Node: "a", Fact: "accelerator.driver", Label: "570.86.15", Slice: "580.105.8"}}
	if len(r.Groups) != 1 || cmp.Diff(want, r.Groups[0].Conflicts) != "" {
		t.Errorf("%+v, want %v", r.Groups, want)
	}
}

// A node type that a machine described is found again by labels, and one that differs is named with its differences.
func TestNodeTypes(t *testing.T) {
	t.Parallel()
	described, err := read(t, list(h100("a"))).Describe("a")
	if err != nil {
		t.Fatal(err)
	}
	described.CPU.Model, described.CPU.Vendor, described.MemoryMiB, described.Source = "Xeon", "GenuineIntel", 1<<20, artifact.SourceMachine
	described.Runtimes = map[string]string{"tensorrt": "10.9.0.34"}
	older := described
	older.Accelerators = slices.Clone(described.Accelerators)
	older.Accelerators[0].Driver = "570.1"
	types := []registry.Named[artifact.Node]{{Name: "older", Document: older}, {Name: "other", Document: artifact.Node{V: 1, OS: "linux"}}}
	r := read(t, list(aNode("a"), slice("a", 1))).Group(append(types, registry.Named[artifact.Node]{Name: "p5", Document: described}))
	if g := r.Groups[0]; !slices.Equal(g.NodeTypes, []string{"p5"}) || g.Nearest != nil {
		t.Errorf("%+v, want node type p5", g)
	}
	r = read(t, list(aNode("a"), slice("a", 1))).Group(types)
	want := &cluster.Nearest{NodeType: "older", Differs: []artifact.Mismatch{{Requirement: "accelerator.driver", Need: "570.1", Have: "580.105.8"}}}
	if diff := cmp.Diff(want, r.Groups[0].Nearest); diff != "" || r.Groups[0].NodeTypes != nil {
		t.Errorf("node types %v, nearest %s", r.Groups[0].NodeTypes, diff)
	}
}

// What kubectl, the API and a pipe of both print is read.
func TestAdd(t *testing.T) {
	t.Parallel()
	one, err := json.Marshal(aNode("a"))
	if err != nil {
		t.Fatal(err)
	}
	bare := aNode("a")
	delete(bare, "kind")
	items, err := json.Marshal([]object{bare})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a list": list(aNode("a")), "one node": string(one), "a list of the API": `{"kind":"NodeList","apiVersion":"v1","items":` + string(items) + `}`,
		"items that are null": `{"kind":"NodeList","items":null}` + string(one), "one behind the other": list() + "\n" + list(aNode("a")), "kind last": `{"items":[` + string(one) + `],"kind":"List"}`,
	} {
		if got := summaries(read(t, text).Group(nil)); !slices.Equal(got, []string{"amd64-v4 = a"}) {
			t.Errorf("%s: %v", name, got)
		}
	}
	old := slice("a", 1)
	old["apiVersion"] = "resource.k8s.io/v1beta1"
	for name, c := range map[string]struct{ text, says string }{
		"nothing": {"", "empty"}, "no JSON": {"NAME STATUS\n", "invalid character"}, "a number": {"7", "want Nodes"}, "cut off": {list(aNode("a"))[:80], "unexpected EOF"},
		"cut off behind an item": {strings.TrimSuffix(list(aNode("a")), `],"kind":"List"}`), "unexpected EOF"},
		"a pod":                  {list(object{"kind": "Pod", "metadata": object{"name": "p"}}), `"Pod": want Nodes`}, "no kind": {`{"items":[{}]}`, "want Nodes"},
		"twice": {list(aNode("a"), aNode("a")), "items[1]: node a is there twice"}, "no name": {`{"kind":"Node"}`, "no name"},
		"an old slice": {list(aNode("a"), old), "want resource.k8s.io/v1"}, "deep": {`{"kind":"Node","x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}", "64 deep"},
		"a wrong type": {list(object{"kind": "Node", "metadata": object{"name": 7}}), "items[0]"},
		"rubbish":      {list(aNode("a")) + "x", "invalid character"}, "items as a text": {`{"items":"a"}`, "want a list"},
	} {
		err := (&cluster.Fleet{}).Add("nodes.json", strings.NewReader(c.text))
		if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "nodes.json, byte ") {
			t.Errorf("%s: %v, want CodeInvalid with %q", name, err, c.says)
		}
	}
}

// endless is a node that never ends.
type endless struct{ began bool }

func (e *endless) Read(p []byte) (int, error) {
	if !e.began {
		e.began = true
		return copy(p, `{"kind":"Node","x":"`), nil
	}
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestAddEnds(t *testing.T) {
	t.Parallel()
	if err := (&cluster.Fleet{}).Add("-", &endless{}); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "an object of more than 8 MiB") {
		t.Errorf("%v, want CodeInvalid", err)
	}
}

// Whatever a cluster prints, each proposed name is one that put takes, no two are equal, and each document is one that
// put reads.
func FuzzGroup(f *testing.F) {
	mixed := h100("m", "nvidia.com/mig.strategy", "mixed", "nvidia.com/mig-1g.10gb.count", "3")
	for _, seed := range []string{
		list(), list(aNode("a"), h100("b"), mixed), list(h100("a"), slice("a", 8)), list(aNode("a"), h100("b", "nvidia.com/gpu.memory", "7")) + list(slice("a", 1)),
		`{"kind":"NodeList","items":[{"metadata":{"name":"a","labels":{"kubernetes.io/arch":"arm64"}}}]}`,
		list(aNode("a"), object{"kind": "ResourceSlice", "metadata": object{}, "spec": object{"driver": "gpu.intel.com", "nodeName": "a", "devices": []object{{"name": "x"}}}}),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var fleet cluster.Fleet
		if err := fleet.Add("fuzz", strings.NewReader(string(text))); err != nil {
			if !registry.HasCode(err, registry.CodeInvalid) {
				t.Errorf("%v: want CodeInvalid", err)
			}
			return
		}
		names := map[string]bool{}
		for _, g := range fleet.Group(nil).Groups {
			if err := registry.ValidateName(g.Name); err != nil || names[g.Name] {
				t.Errorf("name %q: %v, or twice", g.Name, err)
			}
			names[g.Name] = true
			document, err := json.Marshal(g.Document)
			if err == nil {
				_, err = node.Parse(g.Name, document)
			}
			if err != nil {
				t.Errorf("%s: %v", g.Name, err)
			}
			if target, err := cluster.TargetOf(g.Name, g.Document); err == nil && target.Validate() == nil {
				if missing := target.Match(g.Document, g.Document.Runtime()); len(missing) > 0 {
					t.Errorf("%s does not meet its own target: %v", g.Name, missing)
				}
			}
		}
	})
}
