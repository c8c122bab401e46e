//go:build linux

package kubernetes

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// The pod and the rule for its token, as pages show them.
var (
	podOfPage       = regexp.MustCompile("(?s)\n```yaml deploy/pod.yaml\n(.*?)\n```")
	authorityOfPage = regexp.MustCompile("(?s)\n```yaml ca.yaml\n(.*?)\n```")
	ruleOfPage      = regexp.MustCompile("(?s)### Kubernetes\n\n```yaml\n(.*?)\n```")
)

func block(t *testing.T, page string, pattern *regexp.Regexp) string {
	t.Helper()
	data, err := os.ReadFile(programtest.Root("docs", "how-to", page))
	if err != nil {
		t.Fatal(err)
	}
	found := pattern.FindSubmatch(data)
	if found == nil {
		t.Fatalf("%s has no %s", page, pattern)
	}
	return string(found[1]) + "\n"
}

// layerOf is the layer of an image with files of this machine, by their names there.
func layerOf(files map[string]string) ([]byte, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for name, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(data))})
		if _, written := w.Write(data); err != nil || written != nil {
			return nil, errors.Join(err, written)
		}
	}
	err := w.Close()
	return layer.Bytes(), err
}

// deployedImages imports the two images that the pod of the page names: mlpromote-node, and a server which computes the recorded case.
func (m *mounted) deployedImages() error {
	c := m.cluster
	program, err := programtest.Node()
	if err != nil {
		return err
	}
	node, err := layerOf(map[string]string{"mlpromote-node": program})
	if err != nil {
		return err
	}
	files, err := layerOf(map[string]string{
		"golden.py": "testdata/golden.py", "golden.safetensors": m.golden, "cases.safetensors": filepath.Join(m.job.Dir, "cases", "cases-00000.safetensors"),
	})
	if err != nil {
		return err
	}
	// The engine that this pod gets is of int8.
	server := []string{"python3", "/golden.py", "/engine/model/model.onnx", "/cases.safetensors", "/golden.safetensors", "7", "0.2"}
	return errors.Join(c.importLayers("registry.example.com/mlpromote-node:2.1", [][]byte{node}, "/mlpromote-node"),
		c.importLayers("registry.example.com/server:1.0", [][]byte{c.pythonLayer(), files}, server...))
}

// The pod of the page on deployments pulls with the token of its service account, by the rule of the page on access. When its release is in
// quarantine, the server does not start.
func TestDeployed(t *testing.T) {
	t.Parallel()
	c := start(t)
	m := c.mounted()
	if err := m.deployedImages(); err != nil {
		t.Fatal(err)
	}
	c.kubectl("create", "clusterrolebinding", "issuer-discovery", "--clusterrole=system:service-account-issuer-discovery", "--group=system:unauthenticated")
	rule := strings.NewReplacer("serviceaccount:serving:", "serviceaccount:"+c.namespace+":", "audience: mlpromote\n", "audience: mlpromote\n    ca: cluster-ca.pem\n").
		Replace(block(t, "access.md", ruleOfPage))
	ca, err := os.ReadFile(c.authority())
	if err := errors.Join(err, os.WriteFile(filepath.Join(m.Dir, "cluster-ca.pem"), ca, 0o600), os.WriteFile(filepath.Join(m.Dir, "access.yaml"), []byte(rule), 0o600)); err != nil {
		t.Fatal(err)
	}
	m.Kill()
	m.startNamed()

	const trust = "registry: local\ntrust:\n  - {key: local.pub, roles: [builder, verifier, approver, promoter], resources: [\"oci://local/\"]}\n"
	c.kubectl("create", "configmap", "mlpromote-trust", "--from-literal=trust.yaml="+trust,
		"--from-file="+filepath.Join(m.Dir, "keys", "local.pub"), "--from-file="+m.path("tls", "ca.pem"))
	file := filepath.Join(m.job.Dir, "pod.yaml")
	if err := os.WriteFile(file, []byte(block(t, "deploy.md", podOfPage)), 0o600); err != nil {
		t.Fatal(err)
	}
	m.job.Must("render", "--env", "prod", file)
	rendered, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const registryOfPage = `- {name: MLPROMOTE_REGISTRY, value: "https://registry.example.com"}`
	if !strings.Contains(string(rendered), registryOfPage) {
		t.Fatalf("the pod of the page has no %s:\n%s", registryOfPage, rendered)
	}
	// This service has a port and a CA of its own, and there is no DNS. The server of the page would not end.
	pod := strings.NewReplacer(registryOfPage, `- {name: MLPROMOTE_REGISTRY, value: "`+m.URL+`"}
        `+block(t, "deploy.md", authorityOfPage), "\nspec:\n", "\nspec:\n  restartPolicy: Never\n  hostAliases: [{ip: "+nodeAddress+", hostnames: ["+registryName+"]}]\n").Replace(string(rendered))
	c.apply(pod)
	c.answers("digits")

	m.job.Must("quarantine", "prod/"+programtest.Model, "--reason", "a test")
	c.apply(strings.Replace(pod, "name: digits", "name: quarantined", 1))
	const terminated = "{.status.initContainerStatuses[0].state.terminated"
	c.kubectl("wait", "pod/quarantined", "--for=jsonpath="+terminated+"}", "--timeout="+patience.String())
	code, log := c.kubectl("get", "pod/quarantined", "--output=jsonpath="+terminated+".exitCode}"), c.kubectl("logs", "quarantined", "--container=engine")
	if code != "6" || !strings.Contains(log, `in quarantine ("a test")`) {
		t.Errorf("the init container ends with %s for a release in quarantine, want 6:\n%s", code, log)
	}
}
