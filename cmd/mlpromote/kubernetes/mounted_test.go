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

// mountedPod is a pod that runs a command on an engine that is mounted as the page on deployments shows.
const mountedPod = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  imagePullSecrets: [{name: %[2]s}]
  containers:
    - name: server
      image: %[3]s
      imagePullPolicy: Never
      command: %[4]s
      volumeMounts:
        - {name: model, mountPath: /engine, subPath: models, readOnly: true}
        - {name: cases, mountPath: /cases, readOnly: true}
  volumes:
    - name: model
      image:
        reference: %[5]q  # {"$mlpromote": "vision/digits", "engine": "linux-amd64-v1/fp32", "write": "image"}
    - name: cases
      configMap: {name: cases, optional: true}
`

// accountOfPage is the service account of the page on deployments, whose pods pull with a secret.
var accountOfPage = regexp.MustCompile("(?s)\n```yaml account.yaml\n(.*?)\n```")

// mounted is a service with a promoted release, and what pods need that compute a recorded case of it.
type mounted struct {
	*service
	job    *programtest.Job
	golden string // file of the recorded outputs
	secret string
}

// mounted promotes the digits example.
func (c *cluster) mounted() *mounted {
	c.Helper()
	s := c.serve()
	return s.mounted(s.job(c.T))
}

// mounted promotes what a job builds.
func (s *service) mounted(job *programtest.Job) *mounted {
	c := s.cluster
	c.Helper()
	m := &mounted{service: s, job: job}
	m.job.Release()
	m.golden = filepath.Join(m.job.Dir, "golden.safetensors")
	if err := os.WriteFile(m.golden, s.recorded(c.T, m.job), 0o600); err != nil {
		c.Fatal(err)
	}
	c.kubectl("create", "configmap", "cases", "--from-file=cases.safetensors="+filepath.Join(m.job.Dir, "cases", "cases-00000.safetensors"),
		"--from-file=golden.safetensors="+m.golden, "--from-file=testdata/golden.py")
	m.secret = s.pullSecret(m.job.Must("token", "create", "node", "--allow", "read", "--env", "prod", "--model", programtest.Model))
	return m
}

// pod is a pod that computes the case. Its engine is rendered into it.
func (m *mounted) pod(name, secret string) string {
	c := m.cluster
	c.Helper()
	// The command is JSON, which YAML takes.
	const compute = `["python3", "/cases/golden.py", "/engine/model.onnx", "/cases/cases.safetensors", "/cases/golden.safetensors", "7", "1e-4"]`
	file := filepath.Join(m.job.Dir, name+".yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, mountedPod, name, secret, c.python(), compute, ""), 0o600); err != nil {
		c.Fatal(err)
	}
	m.job.Must("render", "--env", "prod", file)
	rendered, err := os.ReadFile(file)
	if err != nil {
		c.Fatal(err)
	}
	return string(rendered)
}

// answers wants a pod to end well, with the answer of the recorded case.
func (c *cluster) answers(pod string) {
	c.Helper()
	code, log := c.finished(pod)
	if code != "0" || !regexp.MustCompile(`(?m)^case 7: 8, golden 8, error \d`).MatchString(log) {
		c.Errorf("pod %s ended with %s:\n%s", pod, code, log)
	}
	c.Log(log)
}

var referenceOfPod = regexp.MustCompile(`reference: \S+`)

// naming is a pod whose image volume names something else than the image form.
func (m *mounted) naming(name, reference string) string {
	return referenceOfPod.ReplaceAllString(m.pod(name, m.secret), "reference: "+reference)
}

// empty is a pod that mounts the engine itself, and wants what containerd makes of it: a folder without a file.
func (m *mounted) empty(name, engine string) string {
	pod := m.naming(name, engine)
	pod = regexp.MustCompile(`command: .*`).ReplaceAllString(pod, `command: [python3, -c, 'import os, sys; sys.exit(os.listdir("/engine"))']`)
	return strings.Replace(pod, "subPath: models, ", "", 1)
}

// A pod that mounts the image form of a promoted engine computes a recorded case from it. Without a token it gets nothing. Of the engine itself,
// it gets an empty folder, as the page on deployments warns.
func TestMounted(t *testing.T) {
	t.Parallel()
	c := start(t)
	m := c.mounted()
	c.apply(m.pod("golden", m.secret))
	c.answers("golden")
	account := block(t, "deploy.md", accountOfPage)
	c.apply(account)
	c.kubectl("create", "secret", "docker-registry", "mlpromote-pull", "--docker-server="+m.Host(), "--docker-username=token", "--docker-password="+m.token)
	c.apply(strings.Replace(m.pod("by-account", m.secret), "imagePullSecrets: [{name: "+m.secret+"}]", "serviceAccountName: digits", 1))
	c.answers("by-account")

	engine := m.job.Must("resolve", programtest.Model, "--env", "prod")
	release, _, _ := strings.Cut(engine, "@")
	for _, wrong := range []struct{ pod, reference, reason, message string }{
		{"engine", engine, "CreateContainerError", `failed to ensure image subpath "models"`},
		{"release", release + ":1.0.1", "ErrImagePull", "no match for platform in manifest"},
	} {
		c.apply(m.naming(wrong.pod, wrong.reference))
		if message := c.waiting(wrong.pod, wrong.reason); !strings.Contains(message, wrong.message) {
			t.Errorf("a pod with %s: %s; want %s, as docs/troubleshooting.md has it", wrong.reference, message, wrong.message)
		}
	}
	c.apply(m.empty("empty", engine))
	if code, log := c.finished("empty"); code != "1" || log != "[]" {
		t.Errorf("containerd mounts %s of the engine itself (exit code %s): are docs/how-to/deploy.md and image-form.md still right?", log, code)
	}
	c.apply(m.pod("stranger", "none"))
	if message := c.waiting("stranger", "ErrImagePull"); !strings.Contains(message, "401 Unauthorized") {
		t.Errorf("a pod without a token: %s", message)
	}
}

// The API server and the service are killed, and a pod that was rendered before is applied while the service is away. It starts
// when the service is back. This test takes away what others need, so it runs before them, alone.
func TestKilled(t *testing.T) {
	c := start(t)
	m := c.mounted()
	pod := m.pod("golden", m.secret)
	c.servers["kube-apiserver"].kill()
	m.Kill()
	if err := c.servers["kube-apiserver"].start(); err != nil {
		t.Fatal(err)
	}
	c.apply(pod)
	if message := c.waiting("golden", "ErrImagePull"); !strings.Contains(message, "connection refused") {
		t.Errorf("a pod without a service: %s", message)
	}
	m.startNamed()
	c.answers("golden")
}
