package server

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// resolveQuery is what a query can ask.
func resolveQuery() []string {
	return append([]string{"env", "environment", "version", "variant", "runtime", "nodeType"}, facts()...)
}

// resolveFacts answers GET: a node type by name, or the facts of a node as query.
func (s server) resolveFacts(w http.ResponseWriter, r *request) error {
	values := r.Values
	request := wire.ResolveRequest{
		Environment: first(values, "env", "environment"), Version: values.Get("version"), Variant: values.Get("variant"),
		NodeType: values.Get("nodeType"),
	}
	var err error
	if request.Runtime, err = runtimeOf(values["runtime"]); err != nil {
		return err
	}
	if request.NodeType == "" || slices.ContainsFunc(facts(), values.Has) {
		node, err := nodeOf(values)
		if err != nil {
			return err
		}
		request.Node = &node
	}
	return s.resolve(w, r, request)
}

// resolveNode answers POST: a node document.
func (s server) resolveNode(w http.ResponseWriter, r *request) error {
	var request wire.ResolveRequest
	if err := read(r, &request); err != nil {
		return err
	}
	return s.resolve(w, r, request)
}

func (s server) resolve(w http.ResponseWriter, r *request, request wire.ResolveRequest) error {
	q := registry.ResolveQuery{
		Environment: request.Environment, Model: r.Name, Version: request.Version, Variant: request.Variant, Runtime: request.Runtime}
	switch {
	case request.Node != nil && request.NodeType != "":
		return registry.Errorf(registry.CodeInvalid, "resolve: want a node or a node type, not both")
	case request.Node != nil && request.Node.V > nodeVersion:
		return registry.Errorf(registry.CodeInvalid, "resolve: node document of version %d: want %d", request.Node.V, nodeVersion)
	case request.Node != nil:
		q.Node = *request.Node
	case request.NodeType != "":
		node, err := s.NodeType(r.Context(), request.NodeType)
		if err != nil {
			return err
		}
		q.Node = node
	default:
		return registry.Errorf(registry.CodeInvalid, "resolve: want a node or a node type")
	}
	resolution, err := s.Registry.Resolve(r.Context(), q)
	if err != nil {
		return refusal{error: err, resolution: &resolution}
	}
	if ref, err := registry.ParseReference(resolution.Reference); err == nil && ref.Host == "" {
		resolution.Reference = r.Host + "/" + resolution.Reference
	}
	if wantsText(r.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(resolution.Reference + "\n")) //nolint:gosec // plain text of checked names; if it fails the client is gone
		return nil
	}
	return answer(w, http.StatusOK, resolution)
}

// nodeVersion is the version of node documents that is understood here. A node that says
// nothing at all is one that has nothing.
const nodeVersion = 1

// wantsText reports whether the client asks for just the reference.
func wantsText(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		switch kind, _, _ := strings.Cut(strings.TrimSpace(part), ";"); kind {
		case "text/plain":
			return true
		case "application/json", "*/*":
			return false
		}
	}
	return false
}

// facts are what a query can say of a node. Those of an accelerator are of gpuCount alike.
func facts() []string {
	return []string{
		"os", "arch", "level", "features", "memoryMiB",
		"gpuVendor", "gpuProduct", "gpuArch", "gpuMemoryMiB", "gpuMig", "gpuDriver", "gpuCount",
	}
}

// nodeOf reads the facts of a node from a query.
func nodeOf(values url.Values) (registry.Node, error) {
	if values.Get("arch") == "" {
		return registry.Node{}, registry.Errorf(registry.CodeInvalid, "resolve: want nodeType=NAME, or the facts of a node: arch=amd64&level=v3&features=avx512_vnni&runtime=onnxruntime:1.30.0")
	}
	node := registry.Node{V: 1, OS: values.Get("os"), Source: "query", CPU: registry.NodeCPU{Arch: values.Get("arch"), Level: values.Get("level")}}
	if node.OS == "" {
		node.OS = "linux"
	}
	for _, list := range values["features"] {
		node.CPU.Features = append(node.CPU.Features, strings.Split(list, ",")...)
	}
	var err error
	if node.MemoryMiB, err = number(values, "memoryMiB", 0); err != nil {
		return registry.Node{}, err
	}
	if values.Get("gpuProduct") == "" && values.Get("gpuArch") == "" {
		return node, nil
	}
	device := registry.NodeAccelerator{
		Vendor: values.Get("gpuVendor"), Product: values.Get("gpuProduct"), Arch: values.Get("gpuArch"),
		MIG: values.Get("gpuMig"), Driver: values.Get("gpuDriver")}
	if device.Vendor == "" {
		device.Vendor = "nvidia"
	}
	if device.MemoryMiB, err = number(values, "gpuMemoryMiB", 0); err != nil {
		return registry.Node{}, err
	}
	count, err := number(values, "gpuCount", 1)
	if err != nil || count < 1 || count > maxDevices {
		return registry.Node{}, registry.Errorf(registry.CodeInvalid, "gpuCount %q: want 1 to %d", values.Get("gpuCount"), maxDevices)
	}
	node.Accelerators = slices.Repeat([]registry.NodeAccelerator{device}, int(count))
	return node, nil
}

// maxDevices bounds the accelerators of a node in a query.
const maxDevices = 64

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

// runtimeOf reads NAME:VERSION, once for each runtime. None means those of the node.
func runtimeOf(values []string) (*registry.Runtime, error) {
	if len(values) == 0 {
		return nil, nil
	}
	runtime := &registry.Runtime{V: 1, Name: strings.Join(values, " "), Runtimes: make(map[string]string)}
	for _, v := range values {
		name, version, ok := strings.Cut(v, ":")
		if !ok || name == "" || version == "" {
			return nil, registry.Errorf(registry.CodeInvalid, "runtime %q: want NAME:VERSION, for example onnxruntime:1.30.0", v)
		}
		runtime.Runtimes[name] = version
	}
	return runtime, nil
}

func first(values url.Values, names ...string) string {
	for _, name := range names {
		if v := values.Get(name); v != "" {
			return v
		}
	}
	return ""
}
