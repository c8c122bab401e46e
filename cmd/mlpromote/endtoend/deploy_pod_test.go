//go:build cgo

package endtoend

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// podTrust is the trust file of the pod, for a registry in which one key has every role.
const podTrust = `registry: local
trust:
  - {key: local.pub, roles: [builder, verifier, approver, promoter], resources: ["oci://local/"]}
`

// deployedPod is the pod of docs/how-to/deploy.md, with a folder for each of its volumes.
type deployedPod struct {
	corev1.Pod
	volumes map[string]string
}

// newDeployedPod reads a rendered pod with the types of Kubernetes.
func newDeployedPod(t *testing.T, file string) deployedPod {
	t.Helper()
	p := deployedPod{volumes: make(map[string]string)}
	if err := yaml.UnmarshalStrict([]byte(lines(t, file)), &p.Pod); err != nil {
		t.Fatal(err)
	}
	for _, v := range p.Spec.Volumes {
		if v.Image != nil {
			t.Errorf("volume %s is an image volume, which is empty with containerd", v.Name)
		}
		p.volumes[v.Name] = t.TempDir()
	}
	if len(p.Spec.InitContainers) != 1 || len(p.Spec.Containers) != 1 {
		t.Fatalf("the pod has %d init containers and %d containers, want one of each", len(p.Spec.InitContainers), len(p.Spec.Containers))
	}
	return p
}

// path maps a path in a container to the test's own folder. The path must be in one of the volumes.
func (p deployedPod) path(t *testing.T, c corev1.Container, path string) string {
	t.Helper()
	for _, m := range c.VolumeMounts {
		folder, there := p.volumes[m.Name]
		if rest, below := strings.CutPrefix(path, m.MountPath+"/"); below && there {
			return filepath.Join(folder, filepath.FromSlash(rest))
		}
	}
	t.Fatalf("container %s has no volume for %s", c.Name, path)
	return ""
}

// initialize runs the init container: program stands for the entry point of its image, and url for the service.
func (p deployedPod) initialize(t *testing.T, program, url string) (code int, said string) {
	t.Helper()
	c := p.Spec.InitContainers[0]
	given := map[string]string{}
	for _, e := range c.Env {
		given[e.Name] = e.Value
	}
	given["MLPROMOTE_REGISTRY"] = url
	given["MLPROMOTE_TOKEN_FILE"] = p.path(t, c, given["MLPROMOTE_TOKEN_FILE"])
	var args []string
	for _, arg := range c.Args {
		arg = regexp.MustCompile(`\$\((\w+)\)`).ReplaceAllStringFunc(arg, func(name string) string { return given[name[2:len(name)-1]] })
		if flag, path, ok := strings.Cut(arg, "=/"); ok {
			arg = flag + "=" + p.path(t, c, "/"+path)
		}
		args = append(args, arg)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"HOME=" + t.TempDir()}
	for name, value := range given {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestDeployedPod renders the pod of the page and carries out its init container against a service that asks for tokens. The server's
// folder then holds the promoted engine, and nothing after a refusal.
func TestDeployedPod(t *testing.T) {
	t.Parallel()
	program, err := programtest.Node()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	s := programtest.NewService(t, programtest.Program(t), root)
	s.MustStart(t)
	if err := s.ShareKeys(); err != nil {
		t.Fatal(err)
	}
	j := programtest.NewJob(t, programtest.Program(t), filepath.Join(root, "digits"), s.ClientEnv()...)
	j.Release()
	file := filepath.Join(j.Dir, "pod.yaml")
	for _, block := range deployFile.FindAllStringSubmatch(lines(t, programtest.Root("docs/how-to/deploy.md")), -1) {
		if block[1] == "deploy/pod.yaml" {
			err = os.WriteFile(file, []byte(block[2]), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	j.Must("render", "--env", "prod", file)
	j.Must("pull", "vision/digits", "--env", "prod", "--runtime", "onnxruntime:1.30.0", "-o", "expected")
	token := j.Must("token", "create", "pod", "--allow", "read", "--env", "prod", "--model", "vision/digits")

	p := newDeployedPod(t, file)
	key := lines(t, filepath.Join(s.Dir, "keys", "local.pub"))
	for name, text := range map[string]string{"trust/trust.yaml": podTrust, "trust/local.pub": key, "token/token": token} {
		volume, name, _ := strings.Cut(name, "/")
		if err := os.WriteFile(filepath.Join(p.volumes[volume], name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, said := p.initialize(t, program, s.URL)
	if code != 0 {
		t.Fatalf("the init container ends with %d:\n%s", code, said)
	}
	server := p.Spec.Containers[0]
	want, err := os.ReadFile(filepath.Join(j.Dir, "expected", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(p.path(t, server, "/engine/model/model.onnx"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the server finds %d bytes, error %v; want the %d of the promoted engine", len(got), err, len(want))
	}

	refused := newDeployedPod(t, file)
	refused.volumes["trust"], refused.volumes["token"] = p.volumes["trust"], p.volumes["token"]
	refused.Spec.InitContainers[0].Env[0].Value = "9.9.9"
	if code, said := refused.initialize(t, program, s.URL); code != 8 {
		t.Errorf("a version that is not there ends with %d, want 8:\n%s", code, said)
	}
	if found, err := os.ReadDir(refused.volumes["engine"]); err != nil || len(found) != 0 {
		t.Errorf("after a refusal the server finds %v, error %v; want nothing", found, err)
	}
}
