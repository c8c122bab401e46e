package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

func (w *world) put(target, body string) (code int) {
	return w.do(http.MethodPut, target, body, "Content-Type", "application/json").Code
}

func TestNodeTypes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const path = "/api/v1/node-types/g6.xlarge"
	document, err := json.Marshal(registrytest.Node("v3"))
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, "before", w.do("GET", path, ""), http.StatusNotFound, registry.CodeNotFound)
	if code := w.put(path, string(document)); code != http.StatusNoContent {
		t.Fatalf("put: %d", code)
	}
	var got artifact.Node
	if want(t, w.do("GET", path, ""), http.StatusOK, &got); got.CPU.Level != "v3" {
		t.Errorf("the node is %+v", got)
	}
	if code := w.do(http.MethodDelete, path, "").Code; code != http.StatusNoContent {
		t.Errorf("delete: %d", code)
	}
	wantProblem(t, "deleted twice", w.do(http.MethodDelete, path, ""), http.StatusNotFound, registry.CodeNotFound)
	for name, body := range map[string]string{
		"a": "", "b": `{}`, "c": `{"v":2,"os":"linux","cpu":{"arch":"amd64"}}`, "d": `{"v":1,"os":"linux","cpu":{"arch":"amd64"},"more":1}`, "e": string(document) + "x",
		".hidden": string(document), "a//b": string(document), "%C3%BC": string(document), strings.Repeat("n", 256): string(document),
	} {
		got := w.do(http.MethodPut, "/api/v1/node-types/"+name, body, "Content-Type", "application/json")
		wantProblem(t, name+" "+body, got, http.StatusBadRequest, registry.CodeInvalid)
	}
	wantProblem(t, "no JSON", w.do(http.MethodPut, path, string(document), "Content-Type", "text/plain"),
		http.StatusUnsupportedMediaType, registry.CodeInvalid)
	wantProblem(t, "too large", w.do(http.MethodPut, path, strings.Repeat(" ", 13<<20), "Content-Type", "application/json"),
		http.StatusRequestEntityTooLarge, registry.CodeInvalid)
}

// A runtime is called as its image is, and is asked for by that name.
func TestRuntimes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	const name = "registry.example/serving/onnx:26.1"
	if code := w.put("/api/v1/runtimes/"+name, `{"v":1,"name":"our server","runtimes":{"onnxruntime":"1.30.0"}}`); code != http.StatusNoContent {
		t.Fatalf("put: %d", code)
	}
	var got artifact.Runtime
	for _, path := range []string{name, strings.ReplaceAll(name, "/", "%2F")} {
		if want(t, w.do("GET", "/api/v1/runtimes/"+path, ""), http.StatusOK, &got); got.Runtimes["onnxruntime"] != "1.30.0" {
			t.Errorf("%s is %+v", path, got)
		}
	}
	var chosen api.Resolution
	want(t, w.do("GET", model+"resolve?environment=prod&arch=amd64&level=v1&runtime="+name, ""), http.StatusOK, &chosen)
	if chosen.Engine == nil || chosen.Release != release.Digest {
		t.Errorf("resolved is %+v", chosen)
	}
	body := `{"environment":"prod","nodeType":"box","runtimeName":"` + name + `"}`
	if want(t, w.post(model+"resolve", body), http.StatusOK, &chosen); chosen.Engine == nil {
		t.Errorf("resolved is %+v", chosen)
	}
	for body, status := range map[string]int{
		`{"environment":"prod","nodeType":"box","runtimeName":"unknown"}`:                                      http.StatusNotFound,
		`{"environment":"prod","nodeType":"box","runtimeName":"x","runtime":{"v":1,"name":"x","runtimes":{}}}`: http.StatusBadRequest,
	} {
		if got := w.post(model+"resolve", body); got.Code != status {
			t.Errorf("%s: %d, want %d", body, got.Code, status)
		}
	}
}

// A scheduler sends the labels of a node as Kubernetes has them.
func TestResolveByLabels(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	const runtime = `"runtime":{"v":1,"name":"x","runtimes":{"onnxruntime":"1.30.0"}}`
	var got api.Resolution
	body := `{"environment":"prod","labels":{"kubernetes.io/arch":"amd64","kubernetes.io/os":"linux","feature.node.kubernetes.io/cpu-cpuid.X86_64_V3":"true"},` + runtime + `}`
	if want(t, w.post(model+"resolve", body), http.StatusOK, &got); got.Engine == nil || got.Engine.Label() != "linux-amd64-v3/int8" {
		t.Errorf("resolved is %+v", got)
	}
	for _, labels := range []string{`{}`, `{"kubernetes.io/os":"linux"}`, `{"kubernetes.io/arch":"amd64","nvidia.com/gpu.product":"NVIDIA-L4","nvidia.com/gpu.memory":"much"}`} {
		wantProblem(t, labels, w.post(model+"resolve", `{"environment":"prod","labels":`+labels+`,`+runtime+`}`), http.StatusBadRequest, registry.CodeInvalid)
	}
}
