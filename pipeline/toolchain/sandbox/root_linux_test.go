package sandbox

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// inside is set for tests that run as root of a user namespace that has no user but root.
const inside = "SANDBOX_TEST_ROOT_ALONE"

// Root of a container has no CAP_DAC_READ_SEARCH, unless somebody adds it. Only without a sandbox does a program need that.
func TestRootOfContainer(t *testing.T) {
	t.Parallel()
	if nobody(unix.CAP_DAC_OVERRIDE) == nil || nobody(unix.CAP_DAC_READ_SEARCH) == nil {
		t.Skip("these tests do not run as root with all capabilities")
	}
	runtime.LockOSThread() // never unlocked: the thread, which has the capabilities, ends with the test
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	data[0].Effective &^= 1 << unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	for _, l := range tries {
		becomes := nobody(l.kept()) != nil
		if want := l.Sandbox != toolchain.SandboxNone; becomes != want {
			t.Errorf("%s: a program becomes nobody: %v, want %v", l, becomes, want)
		}
	}
}

// Root that cannot become another user, as in a container that has one user, runs programs as root. They have no
// capability with which they could make writable what is read-only, and no right to tune the kernel.
func TestRootAlone(t *testing.T) {
	t.Parallel()
	if os.Getenv(inside) == "" {
		runAsRootAlone(t)
		return
	}
	if u := nobody(unix.CAP_DAC_OVERRIDE); u != nil {
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
