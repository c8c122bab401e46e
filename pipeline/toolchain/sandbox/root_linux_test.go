package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// inside is set for tests that run as root of a user namespace that has no user but root.
const inside = "SANDBOX_TEST_ROOT_ALONE"

// Root that cannot become another user, as in a container that has one user, runs programs as root. They have no
// capability with which they could make writable what is read-only, and no right to tune the kernel.
func TestRootAlone(t *testing.T) {
	t.Parallel()
	if os.Getenv(inside) == "" {
		runAsRootAlone(t)
		return
	}
	if u := nobody(); u != nil {
		t.Fatalf("root becomes %+v: want that it cannot", u)
	}
	scripts := map[string]string{
		"has no capability but one":      `test $(id -u) -eq 0 && test "$(grep CapPrm /proc/self/status | cut -f2)" = 0000000000000002`,
		"cannot make its input writable": `mount -o remount,bind,rw $INPUT; if (echo spoilt > $INPUT); then exit 1; fi`,
		"cannot tune the kernel":         `if (: >> /proc/sys/kernel/core_pattern); then exit 1; fi`,
		"writes its output":              `echo made > $OUT/made`,
	}
	for _, l := range tries[:3] {
		for name, script := range scripts {
			t.Run(l.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				job, out := shell(t, script)
				job.Devices = []string{"/dev/null"}
				end, err := on(t, l.level, job)
				text, readErr := os.ReadFile(job.Files[0].From)
				if err != nil || end.Exit != 0 || readErr != nil || string(text) != "content\n" {
					t.Errorf("%+v (%v), input %q (%v): %s", end, err, text, readErr, out)
				}
			})
		}
	}
}

// runAsRootAlone runs the test as root of a new user namespace.
func runAsRootAlone(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^TestRootAlone$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	one := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: one(os.Geteuid()), GidMappings: one(os.Getegid()), GidMappingsEnableSetgroups: os.Geteuid() == 0}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil && len(out) == 0:
		t.Skipf("this machine has no user namespaces: %v", err)
	case err != nil || !strings.Contains(string(out), "--- PASS: TestRootAlone/"):
		t.Errorf("%v\n%s", err, out)
	}
}
