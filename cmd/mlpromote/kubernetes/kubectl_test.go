//go:build linux

package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// cluster is what a test has of the cluster: a namespace of its own, which ends with it.
type cluster struct {
	*testing.T
	*world
	namespace string
}

// start returns the cluster, which all tests share, with a namespace for this test. It skips the test where there are no
// programs for a cluster.
func start(t *testing.T) *cluster {
	t.Helper()
	if os.Getenv(programsVariable) == "" {
		t.Skipf("%s names no folder with the programs of a cluster: make interop-kubernetes builds them, and runs this test", programsVariable)
	}
	w, err := started()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, world: w, namespace: strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")}
	c.kubectl("create", "namespace", c.namespace)
	t.Cleanup(c.end)
	c.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=1m")
	return c
}

// end shows the objects of a test that failed, and deletes them.
func (c *cluster) end() {
	if c.Failed() {
		for _, args := range [][]string{{"get", "pods", "--output=wide"}, {"get", "events", "--sort-by=.lastTimestamp"}} {
			out, err := c.try("", args...)
			c.Logf("kubectl %s (%v):\n%s", strings.Join(args, " "), err, out)
		}
	}
	if out, err := c.try("", "delete", "namespace", c.namespace, "--wait=false"); err != nil {
		c.Errorf("%v: %s", err, out)
	}
}

// try runs kubectl in the namespace of the test, and returns what it wrote.
func (c *cluster) try(stdin string, args ...string) (string, error) {
	return c.run(stdin, append([]string{c.program("components"), "kubectl", "--namespace=" + c.namespace}, args...)...)
}

// run runs a program as an administrator of the cluster, and returns what it wrote.
func (w *world) run(stdin string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.path("kubeconfig"), "HOME="+w.folder)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

// kubectl runs kubectl in the namespace of the test. It must succeed.
func (c *cluster) kubectl(args ...string) string {
	c.Helper()
	out, err := c.try("", args...)
	if err != nil {
		c.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

// within runs kubectl in a namespace that is not the test's. It must succeed.
func (c *cluster) within(namespace, stdin string, args ...string) string {
	c.Helper()
	out, err := c.run(stdin, append([]string{c.program("components"), "kubectl", "--namespace=" + namespace}, args...)...)
	if err != nil {
		c.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

// apply makes objects as YAML describes them.
func (c *cluster) apply(objects string) {
	c.Helper()
	if out, err := c.try(objects, "apply", "--filename=-"); err != nil {
		c.Fatalf("kubectl apply: %v\n%s\n%s", err, out, objects)
	}
}

// beside starts a server of the test beside the cluster, until the end of the test.
func (c *cluster) beside(p *program) {
	c.Helper()
	p.log = c.path("logs", p.name)
	if err := p.start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		p.kill()
		if c.Failed() {
			c.Logf("%s:\n%s", p.name, tail(p.log))
		}
	})
}

// finished waits for the end of the first container of a pod, and returns its exit code and its log.
func (c *cluster) finished(pod string) (code, log string) {
	c.Helper()
	const terminated = "{.status.containerStatuses[0].state.terminated"
	c.kubectl("wait", "pod/"+pod, "--for=jsonpath="+terminated+"}", "--timeout="+patience.String())
	return c.kubectl("get", "pod/"+pod, "--output=jsonpath="+terminated+".exitCode}"), c.kubectl("logs", "pod/"+pod)
}

// waiting waits until a container of a pod cannot start for a reason, and returns the message.
func (c *cluster) waiting(pod, reason string) string {
	c.Helper()
	c.kubectl("wait", "pod/"+pod, "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}="+reason, "--timeout="+patience.String())
	return c.kubectl("get", "events", "--field-selector=involvedObject.name="+pod, "--output=jsonpath={.items[*].message}")
}
