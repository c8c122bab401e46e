//go:build cgo

package endtoend

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// aloneVariable tells a test that it runs where there is no network but loopback.
const aloneVariable = "MLPROMOTE_TEST_ALONE"

// alone runs a test again in a network namespace that has loopback alone, with all that it starts, and reports whether it did: the
// caller then returns. Where this machine does not let it, the log says so, and the test goes on here.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVariable) != "" {
		if all, err := net.Interfaces(); err != nil || len(all) != 1 || all[0].Flags&net.FlagLoopback == 0 {
			t.Fatalf("interfaces %v, error %v, want loopback alone", all, err)
		}
		return false
	}
	enter := []string{"--net"}
	if os.Getuid() != 0 {
		enter = append(enter, "--map-root-user")
	}
	const inside = `ip link set lo up && exec "$@"`
	if runtime.GOOS != "linux" {
		t.Log("not in a network namespace: only Linux has them")
		return false
	}
	probe := slices.Concat(enter, []string{"sh", "-c", inside, "sh", "true"})
	if out, err := exec.CommandContext(t.Context(), "unshare", probe...).CombinedOutput(); err != nil {
		t.Logf("not in a network namespace: unshare: %v\n%s", err, out)
		return false
	}
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	programtest.Cache(t) // it may be installed from the network
	args := slices.Concat(enter, []string{"sh", "-c", inside, "sh", test, "-test.run", "^" + t.Name() + "$", "-test.v"})
	cmd := exec.CommandContext(t.Context(), "unshare", args...)
	cmd.Env = append(os.Environ(), aloneVariable+"=1", programtest.BuiltVariable+"="+programtest.Program(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("in a network namespace: %v\n%s", err, out)
	}
	if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skipf("in a network namespace: %s", out)
	}
	return true
}
