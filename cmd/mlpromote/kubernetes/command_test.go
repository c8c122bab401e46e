//go:build linux

package kubernetes

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

var commandOfPage = regexp.MustCompile(`(?m)^kubectl create secret docker-registry .*$`)

// TestCommand runs a command of the user's in the cluster, with kubectl for the namespace of the test and mlpromote for a service. Without
// one, it is the command of the page about such tests.
func TestCommand(t *testing.T) {
	t.Parallel()
	c := start(t)
	command := os.Getenv("MLPROMOTE_KUBERNETES_COMMAND")
	if command == "" {
		page, err := os.ReadFile(programtest.Root("docs", "how-to", "cluster-tests.md"))
		if err != nil {
			t.Fatal(err)
		}
		command = "set -eu\n" + commandOfPage.FindString(string(page)) + "\nkubectl get secret pull\nmlpromote list\nctr --namespace=k8s.io images list --quiet"
	}
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
	config := strings.Replace(c.kubeconfig(c.world.token), "{cluster: tests,", "{namespace: "+c.namespace+", cluster: tests,", 1)
	if err := os.WriteFile(bin+"/kubeconfig", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(append(os.Environ(), s.env(s.token)...), "KUBECONFIG="+bin+"/kubeconfig", "PATH="+bin+":"+c.programs+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v", command, err)
	}
}
