package server_test

import (
	"net/http"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// TestResolveByFacts asks as curl does.
func TestResolveByFacts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	engine := make(map[string]registry.Digest)
	for _, e := range release.Engines {
		engine[e.Label()] = e.Digest
	}
	for query, label := range map[string]string{
		"environment=prod&arch=amd64&level=v3&runtime=onnxruntime:1.30.0":                       "linux-amd64-v3/int8",
		"environment=prod&os=linux&arch=amd64&level=v4&runtime=onnxruntime:1.31.2":              "linux-amd64-v3/int8",
		"environment=prod&arch=amd64&level=v3&variant=fp32&runtime=onnxruntime:1.30.0":          "linux-amd64-v3/fp32",
		"environment=prod&arch=amd64&level=v1&runtime=onnxruntime:1.30.0&runtime=tensorrt:11.0": "linux-amd64-v1/fp32",
		"environment=staging&version=1.0.0&arch=amd64&level=v2&runtime=onnxruntime:1.30.0":      "linux-amd64-v1/fp32",
		"environment=prod&nodeType=box":                                                         "linux-amd64-v1/fp32",
		"environment=prod&arch=amd64&level=v3&features=avx2,avx512_vnni&gpuProduct=NVIDIA-L4&gpuCount=2&gpuMemoryMiB=23034&gpuArch=sm_89&gpuDriver=580.65&gpuMig=&gpuVendor=nvidia&memoryMiB=1&runtime=onnxruntime:1.30.0": "linux-amd64-v3/int8",
	} {
		var got api.Resolution
		want(t, w.do("GET", "http://registry.example/"+strings.TrimPrefix(model, "/")+"resolve?"+query, ""), http.StatusOK, &got)
		environment := "prod"
		if strings.HasPrefix(query, "environment=staging") {
			environment = "staging"
		}
		if got.Engine == nil || got.Engine.Digest != engine[label] || got.Ref != "registry.example/"+environment+"/vision/digits@"+string(engine[label]) {
			t.Errorf("%s gives %+v, want %s", query, got, label)
		}
		if len(got.Candidates) != len(release.Engines) || !got.Candidates[0].Chosen {
			t.Errorf("%s has the candidates %+v", query, got.Candidates)
		}
	}
}

func TestResolveAsText(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Promoted(t, registrytest.Build{})
	path := "http://127.0.0.1:5080" + model + "resolve?environment=prod&arch=amd64&level=v3&runtime=onnxruntime:1.30.0"
	for accept, text := range map[string]bool{
		"text/plain": true, "text/plain;charset=utf-8, */*": true, "text/*": true, "text/plain;q=0.5, */*": false,
		"application/json;q=0.1, text/plain;q=0.2": true, "text/plain;q=0": false,
		"application/json": false, "": false, "*/*": false, "text/html, application/json, text/plain": false,
	} {
		got := w.do("GET", path, "", "Accept", accept)
		body := got.Body.String()
		isText := strings.HasPrefix(body, "127.0.0.1:5080/prod/vision/digits@sha256:") &&
			strings.Count(body, "\n") == 1 && strings.HasPrefix(got.Header().Get("Content-Type"), "text/plain")
		if got.Code != http.StatusOK || isText != text {
			t.Errorf("Accept %q: %d %s %s, want text %t", accept, got.Code, got.Header().Get("Content-Type"), body, text)
		}
	}
	none := w.do("GET", model+"resolve?environment=prod&arch=arm64", "", "Accept", "text/plain")
	p := wantProblem(t, "no engine", none, http.StatusNotFound, registry.CodeNoEngine)
	if p.Resolution == nil || len(p.Resolution.Candidates) != 3 || !strings.Contains(p.Resolution.Candidates[0].Reasons[0], "needs amd64, has arm64") {
		t.Errorf("the problem is %+v", p)
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Build(t, registrytest.Build{})
	if p := wantProblem(t, "who", w.do("GET", model+"resolve?environment=staging&nodeType=closet", ""),
		http.StatusNotFound, registry.CodeNotFound); p.Detail != "node type closet is unknown" {
		t.Errorf("a node type that is not known: %s", p.Detail)
	}
	for query, code := range map[string]registry.Code{
		"environment=staging&nodeType=closet":                       registry.CodeNotFound,
		"environment=moon&nodeType=box":                             registry.CodeNotFound,
		"environment=prod&nodeType=box":                             registry.CodeNotFound,
		"environment=staging&version=7&nodeType=box":                registry.CodeNotFound,
		"environment=staging&arch=amd64&runtime=onnxruntime:1.30.0": registry.CodeNoEngine,
		"environment=staging&arch=amd64":                            registry.CodeNoEngine,
		"environment=staging&arch=riscv64&runtime=x:1":              registry.CodeNoEngine,
	} {
		wantProblem(t, query, w.do("GET", model+"resolve?"+query, ""), http.StatusNotFound, code)
	}
}

// A query may name a GPU by its architecture alone, and end a list with a comma.
func TestResolveTakesArchitectureOfGPU(t *testing.T) {
	t.Parallel()
	w := setup(t)
	path := model + "resolve?environment=prod&arch=amd64&level=v3&features=avx2,&gpuArch=sm_89"
	if got := w.do("GET", path, ""); got.Code == http.StatusBadRequest {
		t.Errorf("GET %s: got %d %s, want no complaint about the query", path, got.Code, got.Body)
	}
}
