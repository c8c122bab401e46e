//go:build linux

package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// fakeNode is a node without a machine. It has the labels that discovery gives a machine with these devices, and room
// for pods.
func (c *cluster) fakeNode(name string, level int, more ...string) {
	c.Helper()
	labels := "kubernetes.io/os: linux, kubernetes.io/arch: amd64"
	for i := range level {
		labels += fmt.Sprintf(", feature.node.kubernetes.io/cpu-cpuid.X86_64_V%d: 'true'", i+1)
	}
	for i := 0; i < len(more); i += 2 {
		labels += ", " + more[i] + ": '" + more[i+1] + "'"
	}
	c.Cleanup(func() {
		if out, err := c.try("", "delete", "node", name); err != nil {
			c.Errorf("%v: %s", err, out)
		}
	})
	// Pods of other tests, which need a kubelet, do not tolerate the taint.
	c.apply("{apiVersion: v1, kind: Node, metadata: {name: " + name + ", labels: {" + labels + "}}, spec: {taints: [{key: no-kubelet, effect: NoSchedule}]}}")
	const room = `{"status": {"capacity": {"cpu": "16", "memory": "64Gi", "pods": "50"}, "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "50"}}}`
	c.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "--patch="+room)
}

// gpuLabels are those of GPU feature discovery for one whole device.
func gpuLabels(product, capability, memory, driver string) []string {
	major, minor, _ := strings.Cut(capability, ".")
	version := append(strings.Split(driver, "."), "")
	return []string{
		"nvidia.com/gpu.product", product, "nvidia.com/gpu.count", "1", "nvidia.com/gpu.memory", memory, "nvidia.com/gpu.replicas", "1",
		"nvidia.com/gpu.compute.major", major, "nvidia.com/gpu.compute.minor", minor, "nvidia.com/mig.strategy", "none",
		"nvidia.com/cuda.driver-version.full", driver, "nvidia.com/cuda.driver-version.major", version[0],
		"nvidia.com/cuda.driver-version.minor", version[1], "nvidia.com/cuda.driver-version.revision", version[2],
	}
}

// slice publishes a device of a node as NVIDIA's DRA driver does.
func (c *cluster) slice(node, attributes, memory string) {
	c.Helper()
	c.Cleanup(func() {
		if out, err := c.try("", "delete", "resourceslice", node+"-gpu"); err != nil {
			c.Errorf("%v: %s", err, out)
		}
	})
	c.apply(`apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: ` + node + `-gpu}
spec:
  driver: gpu.nvidia.com
  nodeName: ` + node + `
  pool: {name: ` + node + `, generation: 1, resourceSliceCount: 1}
  devices:
    - {name: gpu-0, attributes: {type: {string: gpu}` + attributes + `}, capacity: {` + memory + `}}
`)
}

// workload is a Deployment. Its pods tolerate nodes without a kubelet, which nothing reports as ready.
const workload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      automountServiceAccountToken: false
      tolerations: [{operator: Exists}]
      containers: [{name: server, image: none%[2]s}]
%[3]s`

// claimed returns the additions to a container and to its pod that take a device by a template.
func claimed(template string) (container, pod string) {
	return ", resources: {claims: [{name: accelerator}]}", "      resourceClaims: [{name: accelerator, resourceClaimTemplateName: " + template + "}]\n"
}

// placed starts a workload that was patched with an affinity, and returns the node that its pod is bound to, or why it is
// bound to none.
func (c *cluster) placed(name, affinity, container, pod string, bound bool) string {
	c.Helper()
	c.apply(fmt.Sprintf(workload, name, container, pod))
	c.kubectl("patch", "deployment", name, "--patch-file="+affinity)
	c.kubectl("scale", "deployment", name, "--replicas=1")
	c.kubectl("wait", "deployment/"+name, "--for=jsonpath={.status.unavailableReplicas}=1", "--timeout="+patience.String())
	condition, path := "PodScheduled=false", `{.items[*].status.conditions[?(@.type=="PodScheduled")].message}`
	if bound {
		condition, path = "PodScheduled", "{.items[*].spec.nodeName}"
	}
	c.kubectl("wait", "pod", "--selector=app="+name, "--for=condition="+condition, "--timeout="+patience.String())
	return c.kubectl("get", "pods", "--selector=app="+name, "--output=jsonpath="+path)
}

// Node types that were read from a cluster by kubectl go back to its scheduler as affinities and claims. It binds the pods to
// the nodes that they were read from, and refuses those that need another device.
func TestScheduled(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.fakeNode("cpu-v4", 4)
	c.fakeNode("cpu-v2", 2)
	c.fakeNode("l4-new", 4, gpuLabels("NVIDIA-L4", "8.9", "23034", "580.65.06")...)
	c.fakeNode("l4-old", 4, gpuLabels("NVIDIA-L4", "8.9", "23034", "570.86.15")...)
	c.fakeNode("dra-h100", 4)
	c.fakeNode("dra-bare", 4)
	c.Cleanup(func() {
		if out, err := c.try("", "delete", "deviceclass", "gpu.nvidia.com"); err != nil {
			c.Errorf("%v: %s", err, out)
		}
	})
	c.apply(`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu.nvidia.com},
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"'}}]}}`)
	c.slice("dra-h100", `, productName: {string: NVIDIA H100 80GB HBM3}, cudaComputeCapability: {version: 9.0.0}, driverVersion: {version: 580.105.8}`, "memory: {value: 81559Mi}")
	c.slice("dra-bare", "", "") // a device without a fact stops no allocation

	s := c.serve()
	job := s.job(t)
	nodes := filepath.Join(job.Dir, "nodes.json")
	listed := c.kubectl("get", "nodes,resourceslices", "--output=json")
	if err := os.WriteFile(nodes, []byte(listed), 0o600); err != nil {
		t.Fatal(err)
	}
	groups := job.Must("node-type", "suggest", nodes)
	for _, want := range []string{
		`(?m)^h100-80gb-amd64-v4 +1 +dra-h100 `, `(?m)^l4-amd64-v4-driver-570\.86\.15 +1 +l4-old `, `(?m)^l4-amd64-v4-driver-580\.65\.6 +1 +l4-new `, `(?m)^amd64-v2 +1 +cpu-v2 `,
	} {
		if !regexp.MustCompile(want).MatchString(groups) {
			t.Errorf("node-type suggest has no line %s:\n%s", want, groups)
		}
	}
	for _, name := range []string{"cpu-v2", "cpu-v4", "l4-new", "l4-old", "dra-h100"} {
		job.Must("node-type", "put", name, nodes, "--node", name)
	}
	b200 := filepath.Join(job.Dir, "b200.json")
	const document = `{"v": 1, "os": "linux", "cpu": {"arch": "amd64"}, "accelerators": [{"vendor": "nvidia", "product": "NVIDIA-B200", "arch": "sm_100", "mig": ""}]}`
	if err := os.WriteFile(b200, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	job.Must("node-type", "put", "b200", b200)

	c.checkAffinities(job)
	c.checkClaims(job)
}

func (c *cluster) checkAffinities(job *programtest.Job) {
	export := func(name string) string {
		file := filepath.Join(job.Dir, name+"-affinity.yaml")
		job.Must("export", "target", "--node-type", name, "--for", "node-affinity", "-o", file)
		return file
	}
	if got := c.placed("new-driver", export("l4-new"), "", "", true); got != "l4-new" {
		c.Errorf("a pod for the L4 with driver 580 is bound to %s", got)
	}
	if got := c.placed("old-driver", export("l4-old"), "", "", true); got != "l4-old" && got != "l4-new" {
		c.Errorf("a pod for an L4 with driver 570 or later is bound to %s", got)
	}
	if got := c.placed("blackwell", export("b200"), "", "", false); !strings.Contains(got, "didn't match Pod's node affinity") {
		c.Errorf("a pod for a device that no node has waits because: %s", got)
	}
}

func (c *cluster) checkClaims(job *programtest.Job) {
	export := func(name string) (affinity, container, pod string) {
		claim, affinity := filepath.Join(job.Dir, name+"-claim.yaml"), filepath.Join(job.Dir, name+"-processor.yaml")
		job.Must("export", "target", "--node-type", name, "--for", "resource-claim-template", "-o", claim)
		job.Must("export", "target", "--node-type", name, "--for", "node-affinity", "--no-accelerator", "-o", affinity)
		c.kubectl("apply", "--filename="+claim)
		container, pod = claimed(name)
		return affinity, container, pod
	}
	affinity, container, pod := export("dra-h100")
	if got := c.placed("hopper", affinity, container, pod, true); got != "dra-h100" {
		c.Errorf("a pod with a claim for an H100 is bound to %s", got)
	}
	const results = "--output=jsonpath={.items[*].status.allocation.devices.results[*].pool}"
	if got := c.kubectl("get", "resourceclaims", results); got != "dra-h100" {
		c.Errorf("devices of %q are allocated, want one of dra-h100", got)
	}
	if got := c.placed("second-hopper", affinity, container, pod, false); !strings.Contains(got, "cannot allocate all claims") {
		c.Errorf("a second pod for the only H100 waits because: %s", got)
	}
	affinity, container, pod = export("b200")
	if got := c.placed("blackwell-claim", affinity, container, pod, false); !strings.Contains(got, "cannot allocate all claims") {
		c.Errorf("a pod with a claim for a device that no node has waits because: %s", got)
	}
}
