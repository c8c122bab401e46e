//go:build linux

package kubernetes

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// TestCommand runs a command of the user's in the cluster, with kubectl for the namespace of the test and mlpromote for a service.
func TestCommand(t *testing.T) {
	t.Parallel()
	command := os.Getenv("MLPROMOTE_KUBERNETES_COMMAND")
	if command == "" {
		t.Skip("no command to run: make interop-kubernetes COMMAND='sh check.sh'")
	}
	c := start(t)
	c.kubectl("config", "set-context", "--current", "--namespace="+c.namespace)
	s := c.serve()
	bin := t.TempDir()
	wrapper := fmt.Sprintf("#!/bin/sh\nexec %q kubectl \"$@\"\n", c.program("components"))
	if err := os.WriteFile(bin+"/kubectl", []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.Program, bin+"/mlpromote"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = os.Getenv("MLPROMOTE_KUBERNETES_DIR")
	cmd.Env = append(append(os.Environ(), s.env(s.token)...), "KUBECONFIG="+c.path("kubeconfig"), "PATH="+bin+":"+c.programs+":"+os.Getenv("PATH"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v", command, err)
	}
}
