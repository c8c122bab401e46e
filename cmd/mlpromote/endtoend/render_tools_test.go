//go:build cgo

package endtoend

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// deployFile is a file of docs/how-to/deploy.md with its name.
var deployFile = regexp.MustCompile("(?ms)^```yaml (\\S+)\n(.*?)^```$")

// What stands around the files of the page: a chart and a kustomization that use them.
var deployAround = map[string]string{
	"deploy/Chart.yaml": "apiVersion: v2\nname: digits\nversion: 1.0.0\n",
	"deploy/templates/pod.yaml": `apiVersion: v1
kind: Pod
metadata:
  name: digits
  annotations: {version: "{{ .Values.model.version }}"}
spec:
  volumes:
    - name: model
      image: {reference: "{{ .Values.model.reference }}"}
  containers:
    - {name: server, image: "server:{{ .Values.server.tag }}"}
`,
	"deploy/kustomize/kustomization.yaml": `resources: [deployment.yaml]
components: [../models]
images:
  - name: server
    newTag: "1.0" # {"$imagepolicy": "flux-system:server:tag"}
`,
	"deploy/kustomize/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: digits}
spec:
  selector: {matchLabels: {app: digits}}
  template:
    metadata: {labels: {app: digits}}
    spec:
      containers: [{name: server, image: server}]
      volumes:
        - name: model
          image: {reference: digits}
`,
}

const deployNode = `{"v": 1, "os": "linux", "cpu": {"arch": "amd64", "level": "v3"}, "runtimes": {"onnxruntime": "1.30.0"}}`

// TestRenderBesideOtherTools renders the files of the page from a service, makes manifests of them with Helm and Kustomize, and lets
// other tools write to the same files. A head that the files do not follow is drift.
func TestRenderBesideOtherTools(t *testing.T) {
	t.Parallel()
	kustomize, writers, helm := newStock(t, "kustomize"), newStock(t, "writers"), newStock(t, "helm")
	root := t.TempDir()
	s := programtest.NewService(t, programtest.Program(t), root)
	s.MustStart(t)
	if err := s.ShareKeys(); err != nil {
		t.Fatal(err)
	}
	j := programtest.NewJob(t, programtest.Program(t), filepath.Join(root, "digits"), s.ClientEnv()...)
	j.Release()
	node := filepath.Join(root, "node.json")
	if err := os.WriteFile(node, []byte(deployNode), 0o600); err != nil {
		t.Fatal(err)
	}
	j.Must("node-type", "put", "g6.xlarge", node)
	var marked []string
	at := func(name string) string { return filepath.Join(j.Dir, filepath.FromSlash(name)) }
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, block := range deployFile.FindAllStringSubmatch(lines(t, programtest.Root("docs/how-to/deploy.md")), -1) {
		if !strings.HasPrefix(block[1], "deploy/") { // others are for the cluster
			continue
		}
		write(block[1], block[2])
		marked = append(marked, block[1])
	}
	if len(marked) != 3 {
		t.Fatalf("the page has the files %q, want three", marked)
	}
	for name, text := range deployAround {
		write(name, text)
	}
	render := func(more ...string) []string {
		return append(append([]string{"render", "--env", "prod"}, more...), marked...)
	}
	j.Must(render()...)
	engine := s.Host() + "/prod/vision/digits@" + firstField(t, j.Must("resolve", "vision/digits", "--env", "prod", "--node", node, "--as", "image"))
	manifests := func(when, server string) {
		t.Helper()
		if got := helm.must(t, "template", at("deploy")); !strings.Contains(strings.ReplaceAll(got, `"`, ""), "reference: "+engine) {
			t.Errorf("%s: Helm makes\n%s\nwant the reference %s", when, got, engine)
		}
		got := kustomize.must(t, "build", "--load-restrictor", "LoadRestrictionsNone", at("deploy/kustomize"))
		if !strings.Contains(got, "reference: "+s.Host()+"/prod/vision/digits@sha256:") || !strings.Contains(got, "image: server:"+server+"\n") {
			t.Errorf("%s: Kustomize makes\n%s\nwant an engine of prod, and server:%s", when, got, server)
		}
		j.Must(render("--check")...)
	}
	manifests("rendered", "1.0")
	if got := lines(t, at("deploy/pod.yaml")); !strings.Contains(got, `value: "1.0.1"`) {
		t.Errorf("got\n%s\nwant the version of prod", got)
	}
	writers.must(t, "flux", at("deploy/values.yaml"), "flux-system:server:tag", "2.2")
	if got := lines(t, at("deploy/values.yaml")); !strings.Contains(got, `tag: "2.2"`) {
		t.Errorf("got\n%s\nwant the tag that Flux wrote", got)
	}
	writers.must(t, "flux", at("deploy/kustomize/kustomization.yaml"), "flux-system:server:tag", "1.1")
	manifests("after Flux", "1.1")
	writers.must(t, "image-updater", at("deploy/kustomize/kustomization.yaml"), "server", "1.2")
	writers.must(t, "image-updater", at("deploy/models/kustomization.yaml"), "another", "9")
	manifests("after Image Updater", "1.2")
	kustomize.dir = at("deploy/kustomize")
	kustomize.must(t, "edit", "set", "image", "server=server:1.3")
	manifests("after kustomize edit", "1.3")

	j.Release()                                                                                                     // and no commit followed it
	if got := j.Drift(render("--check")...); !strings.Contains(got, "deploy/values.yaml:3: 1.0.1 is now 1.0.2\n") { // the engines are the same bytes
		t.Errorf("got the drift\n%s\nwant the version that does not follow prod", got)
	}
	j.Must(render()...)
	j.Must(render("--check")...)
	kustomize.dir = at("deploy/models")
	kustomize.must(t, "edit", "set", "image", "server=server:1.3") // the page says what this does
	if got := lines(t, at("deploy/models/kustomization.yaml")); strings.Contains(got, "$mlpromote") {
		t.Errorf("kustomize edit keeps comments now: the page says that it does not\n%s", got)
	}
	j.Refused(2, "render", "--env", "prod", "--check", "deploy/models/kustomization.yaml")
}

// firstField is the digest of the ref that resolve prints.
func firstField(t *testing.T, ref string) string {
	t.Helper()
	_, digest, ok := strings.Cut(strings.Fields(ref)[0], "@")
	if !ok {
		t.Fatalf("resolve printed %q, want a ref with a digest", ref)
	}
	return digest
}
