package server

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/server/openapi"
)

// facts lists the query parameters that describe a node. Accelerator facts apply to all
// gpuCount devices.
func facts() []string {
	return []string{
		"os", "arch", "level", "features", "memoryMiB",
		"gpuVendor", "gpuProduct", "gpuArch", "gpuMemoryMiB", "gpuMig", "gpuDriver", "gpuCount",
	}
}

// nodeOf reads the facts of a node from a query.
func nodeOf(values url.Values) (artifact.Node, error) {
	if values.Get("arch") == "" {
		return artifact.Node{}, registry.Errorf(registry.CodeInvalid,
			"resolve: want nodeType=NAME, or the facts of a node: "+
				"arch=amd64&level=v3&features=avx512_vnni&runtime=onnxruntime:1.30.0")
	}
	node := artifact.Node{
		V:      1,
		OS:     values.Get("os"),
		Source: "query",
		CPU:    artifact.NodeCPU{Arch: values.Get("arch"), Level: values.Get("level")},
	}
	if node.OS == "" {
		node.OS = "linux"
	}
	for _, list := range values["features"] {
		node.CPU.Features = append(node.CPU.Features, strings.FieldsFunc(list, func(r rune) bool { return r == ',' })...)
	}
	var err error
	if node.MemoryMiB, err = number(values, "memoryMiB", 0); err != nil {
		return artifact.Node{}, err
	}
	if values.Get("gpuProduct") == "" && values.Get("gpuArch") == "" {
		return node, nil
	}
	device := artifact.NodeAccelerator{
		Vendor: values.Get("gpuVendor"), Product: values.Get("gpuProduct"), Arch: values.Get("gpuArch"),
		MIG: values.Get("gpuMig"), Driver: values.Get("gpuDriver")}
	if device.Vendor == "" {
		device.Vendor = "nvidia"
	}
	if device.MemoryMiB, err = number(values, "gpuMemoryMiB", 0); err != nil {
		return artifact.Node{}, err
	}
	count, err := number(values, "gpuCount", 1)
	if err != nil || count < 1 || count > openapi.MaxDevices {
		return artifact.Node{}, registry.Errorf(registry.CodeInvalid,
			"gpuCount %q: want 1 to %d", values.Get("gpuCount"), openapi.MaxDevices)
	}
	node.Accelerators = slices.Repeat([]artifact.NodeAccelerator{device}, int(count))
	return node, nil
}

func number(values url.Values, name string, absent int64) (int64, error) {
	text := values.Get(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, registry.Errorf(registry.CodeInvalid, "%s %q: want a number", name, text)
	}
	return n, nil
}
