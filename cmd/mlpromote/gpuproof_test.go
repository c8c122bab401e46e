package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The proof on a GPU says of a machine without one that it has none, with the exit code of mlpromote for
// machines that meet no target.
func TestGPUProofWantsAGPU(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("nvidia-smi"); err == nil {
		t.Skip("this machine has nvidia-smi, so it may have a GPU")
	}
	program, err := exec.LookPath("mlpromote")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "../../tools/gpu-proof.sh", "prove", t.TempDir())
	cmd.Env = append(os.Environ(), "MLPROMOTE="+program)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 6 || !strings.Contains(string(out), "this machine has no GPU that mlpromote sees") {
		t.Errorf("%v: %s", err, out)
	}
}
