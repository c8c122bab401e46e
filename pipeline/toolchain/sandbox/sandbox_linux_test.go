package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

func TestMain(m *testing.M) {
	if exit, keeper := Enter(); keeper {
		syscall.Exit(exit)
	}
	os.Exit(m.Run())
}

// log collects what a program prints.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// shell is a job that runs a script with one input, $INPUT, and may write to $OUT.
func shell(t *testing.T, script string) (Job, *log) {
	t.Helper()
	dir := t.TempDir()
	out := new(log)
	folder := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"in", "out", "tmp", "own"} {
		if err := os.Mkdir(folder(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(folder("own/file"), []byte("content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Job{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: folder("out"), Output: out,
		Env:   []string{"PATH=/usr/bin:/bin", "INPUT=" + folder("in/model/m"), "OWN=" + folder("own"), "OUT=" + folder("out")},
		Files: []File{{At: folder("in/model/m"), From: folder("own/file"), Solid: true}}, Inputs: folder("in"),
		Write: []string{folder("out")}, Temp: folder("tmp"),
		Limits: Limits{CPU: time.Minute, MemoryBytes: 4 << 30, FileBytes: 1 << 20, Processes: 4096, OpenFiles: 256},
	}, out
}

// have skips where this machine does not have the level.
func have(t *testing.T, l level) {
	t.Helper()
	for _, try := range tries {
		if try.level != l {
			continue
		}
		if err := try.works(); err != nil {
			t.Skipf("this machine has no sandbox %s: %v", l, err)
		}
	}
}

// sleep is a command that sleeps longer than any test runs, and can be told from others.
func sleep() string { return fmt.Sprintf("sleep %d", 36_000_000+rand.IntN(1_000_000_000)) }

// gone checks that a command does not run any more.
func gone(t *testing.T, command string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatalf("no processes at all: %v", err)
	}
	for _, line := range lines {
		if text, err := os.ReadFile(line); err == nil && strings.ReplaceAll(strings.Trim(string(text), "\x00"), "\x00", " ") == command {
			t.Errorf("%s: %s still runs", line, command)
		}
	}
}

// on runs a job on a level.
func on(t *testing.T, l level, job Job) (End, error) {
	t.Helper()
	have(t, l)
	if l.Sandbox != toolchain.SandboxNamespaces {
		if err := place(job.Files, l.Sandbox == toolchain.SandboxLandlock); err != nil {
			t.Fatal(err)
		}
	}
	k := keeper{orders: newOrders(job, l)}
	return k.run(t.Context(), job)
}

// Each script ends with 0 where the sandbox holds.
func TestLevels(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	scripts := []struct {
		name, script string
		from         toolchain.Sandbox // the weakest sandbox that can
	}{
		{"reads its input", `test "$(cat $INPUT)" = content`, toolchain.SandboxNone},
		{"writes its output", `echo made > $OUT/made && mkdir $OUT/d && mv $OUT/made $OUT/d/made`, toolchain.SandboxNone},
		{"is not root", `test $(id -u) -ne 0`, toolchain.SandboxNone},
		{"gets no privileges", `grep -q '^NoNewPrivs:.1$' /proc/self/status`, toolchain.SandboxNone},
		{"has few open files", `test $(ulimit -n) -eq 256`, toolchain.SandboxNone},
		{"may ask what it may", `test -r $INPUT && test -w $OUT`, toolchain.SandboxNone},
		{"cannot write to its input", `! echo spoilt > $INPUT`, toolchain.SandboxLandlock},
		{"cannot remove its input", `! rm -f $INPUT`, toolchain.SandboxLandlock},
		{"cannot add an input", `! touch ${INPUT}2`, toolchain.SandboxLandlock},
		{"cannot read elsewhere", `! cat ` + secret, toolchain.SandboxLandlock},
		{"cannot write elsewhere", `! touch ` + outside + `/new`, toolchain.SandboxLandlock},
		{"cannot link to elsewhere", `! ln ` + secret + ` $OUT/stolen`, toolchain.SandboxLandlock},
		{"cannot write to the system", `! touch /usr/new && ! touch /etc/new && ! mkdir /new`, toolchain.SandboxLandlock},
		{"cannot change modes of its input", `! chmod 777 $INPUT`, toolchain.SandboxNamespaces},
		{"sees no folder of others", `test ! -e ` + outside + ` && test ! -e /root && test ! -e /home`, toolchain.SandboxNamespaces},
		{"has a /tmp of its own", `test $(ls /tmp | wc -l) -le 1 && touch /tmp/new`, toolchain.SandboxNamespaces},
		{"sees no process of others", `test $(ls -d /proc/[0-9]* | wc -l) -lt 8`, toolchain.SandboxNamespaces},
		{"has no network", `test "$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ')" = lo && ! grep -q . /proc/net/fib_trie`, toolchain.SandboxNamespaces},
		{"cannot tune the kernel", `! echo 1 > /proc/sys/kernel/core_pattern`, toolchain.SandboxNamespaces},
		{"has no devices", `test ! -e /dev/mem && test ! -e /dev/vda && echo x > /dev/null`, toolchain.SandboxNamespaces},
		{"does not know the machine's name", `test "$(uname -n)" = mlpromote`, toolchain.SandboxNamespaces},
		{"has no capability but one", `test "$(grep CapEff /proc/self/status | cut -f2)" = ` + capabilities("0000000000000002"), toolchain.SandboxLandlock},
	}
	order := map[toolchain.Sandbox]int{toolchain.SandboxNamespaces: 0, toolchain.SandboxLandlock: 1, toolchain.SandboxNone: 2}
	for _, l := range tries {
		for _, s := range scripts {
			if order[l.Sandbox] > order[s.from] {
				continue
			}
			t.Run(l.String()+" "+s.name, func(t *testing.T) {
				t.Parallel()
				job, out := shell(t, s.script)
				end, err := on(t, l.level, job)
				if err != nil || end.Exit != 0 || end.Signal != 0 {
					t.Errorf("%+v (%v): %s", end, err, out)
				}
				if text, err := os.ReadFile(job.Files[0].From); err != nil || string(text) != "content\n" {
					t.Errorf("the input is now %q (%v)", text, err)
				}
			})
		}
	}
}

// With Loopback, processes reach each other by 127.0.0.1, and nothing outside.
func TestLoopback(t *testing.T) {
	t.Parallel()
	for _, l := range tries {
		if l.Sandbox != toolchain.SandboxNamespaces {
			continue
		}
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			job, out := shell(t, `grep -q 'host LOCAL' /proc/net/fib_trie && grep -q 127.0.0.1 /proc/net/fib_trie && ! grep -q 'UNICAST' /proc/net/route && test "$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ')" = lo`)
			job.Loopback = true
			if end, err := on(t, l.level, job); err != nil || end.Exit != 0 {
				t.Errorf("%+v (%v): %s", end, err, out)
			}
		})
	}
}

// A program with a device has that device, and can name its threads as NVIDIA's library does; the
// system stays closed to it.
func TestDevices(t *testing.T) {
	t.Parallel()
	const device = "/dev/ptmx"
	if _, err := os.Stat(device); err != nil {
		t.Skip(err)
	}
	for _, l := range tries {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			script := `test -w ` + device + ` && ! echo 1 > /proc/sys/kernel/core_pattern && ! echo h > /proc/sysrq-trigger && cat /proc/self/comm`
			if l.Sandbox != toolchain.SandboxLandlock || os.Geteuid() != 0 {
				script += ` && echo named > /proc/self/task/$$/comm && test "$(cat /proc/$$/comm)" = named`
			}
			if l.Sandbox == toolchain.SandboxNone {
				script = `test -e ` + device
			}
			job, out := shell(t, script)
			job.Devices = []string{device}
			end, err := on(t, l.level, job)
			if err != nil || end.Exit != 0 {
				t.Errorf("%+v (%v): %s", end, err, out)
			}
			if lacks := strings.Join(end.Enforced.Lacks, "\n"); !strings.Contains(lacks, device) {
				t.Errorf("what is said of the sandbox does not name the device: %q", lacks)
			}
			job, out = shell(t, `! echo named > /proc/self/task/$$/comm`)
			if end, err := on(t, l.level, job); l.Sandbox != toolchain.SandboxNone && (err != nil || end.Exit != 0) {
				t.Errorf("without a device: %+v (%v): %s", end, err, out)
			}
		})
	}
}

// A program that nothing confines cannot write to the files of root, nor to anything but what it is given.
func TestUnconfinedWrites(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("this is about the files of root")
	}
	job, out := shell(t, `! echo spoilt > '`+file+`' && ! touch /usr/new && echo x > $OUT/x && test "$(grep CapEff /proc/self/status | cut -f2)" = `+capabilities("0000000000000004"))
	end, err := on(t, level{Sandbox: toolchain.SandboxNone}, job)
	if text, _ := os.ReadFile(file); err != nil || end.Exit != 0 || string(text) != "content" {
		t.Errorf("%+v (%v), the file is %q: %s", end, err, text, out)
	}
}

// A program has no key of the session that it was started in.
func TestKeyring(t *testing.T) {
	t.Parallel()
	for _, l := range tries {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			have(t, l.level)
			runtime.LockOSThread() // the keyring is that of a thread, which then ends with the test
			const name = "mlpromote-sandbox-test"
			if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil {
				t.Skipf("this machine has no keyrings: %v", err)
			}
			if _, err := unix.AddKey("user", name, []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
				t.Skipf("this machine allows no keys: %v", err)
			}
			if seen, err := os.ReadFile("/proc/keys"); err != nil || !strings.Contains(string(seen), name) {
				t.Skipf("keys are not listed here: %v", err)
			}
			job, out := shell(t, `! grep `+name+` /proc/keys`)
			if end, err := on(t, l.level, job); err != nil || end.Exit != 0 {
				t.Errorf("%+v (%v): %s", end, err, out)
			}
		})
	}
}

// All processes of a program together have the memory and number that are allowed; what bounds them is gone with the program.
func TestTree(t *testing.T) {
	t.Parallel()
	group, err := newCgroup(Limits{MemoryBytes: 1 << 30, Processes: 10})
	if err != nil {
		t.Skipf("this machine allows no control groups: %v", err)
	}
	group.remove()
	for _, l := range tries {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			job, out := shell(t, `for i in 1 2 3 4 5 6 7 8; do
	(a=$(head -c 40000000 /dev/zero | tr '\0' x); sleep 2; test ${#a} -eq 40000000 && touch $OUT/held$i) &
done
wait; test $(ls $OUT | wc -l) -lt 8`)
			job.Limits.MemoryBytes = 160 << 20
			job.Limits.OpenFiles = 64
			end, err := on(t, l.level, job)
			if err != nil || end.Exit != 0 && end.Signal == 0 {
				t.Errorf("memory: %+v (%v): %s", end, err, out)
			}
			job, out = shell(t, `i=0; while test $i -lt 200; do i=$((i+1)); sleep 1000 & done; exit 9`)
			job.Limits.Processes = 40
			k := keeper{orders: newOrders(job, l.level)}
			k.orders.Job.Limits.Processes = 4096 // only the group bounds them
			if end, err := k.run(t.Context(), job); err != nil || end.Exit == 9 {
				t.Errorf("processes: %+v (%v): %s", end, err, out)
			}
			for _, folder := range k.group.folders {
				if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is left: %v", folder, err)
				}
			}
		})
	}
}

// capabilities is what a program has: root's those that are kept for it.
func capabilities(kept string) string {
	if os.Geteuid() == 0 {
		return kept
	}
	return "0000000000000000"
}

// Nothing listens where the program looks: it cannot reach loopback either.
func TestNoLoopback(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "here\n")
			c.Close()
		}
	}()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash, which can open TCP connections, is not installed")
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, l := range tries {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			job, out := shell(t, "")
			job.Path, job.Args = bash, []string{"bash", "-c", `read line < /dev/tcp/127.0.0.1/` + port + ` && test "$line" = here`}
			end, err := on(t, l.level, job)
			if reached := end.Exit == 0; err != nil || reached != (l.Sandbox == toolchain.SandboxNone) {
				t.Errorf("%+v (%v): %s", end, err, out)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for _, l := range tries {
		for script, want := range map[string]End{
			"exit 0":                {},
			"exit 7":                {Exit: 7},
			"kill -SEGV $$":         {Exit: -1, Signal: syscall.SIGSEGV},
			"kill -ABRT $$":         {Exit: -1, Signal: syscall.SIGABRT},
			"SLEEP & exit 3":        {Exit: 3},
			"setsid SLEEP & exit":   {},
			"(setsid SLEEP &) & :":  {},
			"nohup SLEEP & sleep 1": {},
		} {
			t.Run(l.String()+" "+script, func(t *testing.T) {
				t.Parallel()
				command := sleep()
				job, out := shell(t, strings.ReplaceAll(script, "SLEEP", command))
				end, err := on(t, l.level, job)
				if err != nil || end.Exit != want.Exit || end.Signal != want.Signal {
					t.Errorf("%+v (%v): %s", end, err, out)
				}
				gone(t, command)
			})
		}
	}
}

// A fork bomb goes off within its bounds, and is over with the program.
func TestProcesses(t *testing.T) {
	t.Parallel()
	for _, l := range tries {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			job, out := shell(t, `i=0; while test $i -lt 200; do i=$((i+1)); sleep 1000 & done; exit 9`)
			job.Limits.Processes = 40
			end, err := on(t, l.level, job)
			if !l.UserNamespace && os.Getuid() != 0 {
				if len(end.Enforced.Lacks) == 0 || end.Enforced.Processes != 0 {
					t.Errorf("enforced %+v, want that this is not bounded", end.Enforced)
				}
				return
			}
			if err != nil || end.Exit == 9 || end.Enforced.Processes != 40 || !strings.Contains(out.String(), "fork") {
				t.Errorf("%+v (%v): %s", end, err, out)
			}
		})
	}
}

// when calls f once the program has written the file ready.
func when(job Job, f func()) {
	for {
		if _, err := os.Stat(filepath.Join(job.Dir, "ready")); err == nil {
			f()
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestContextEndsAll(t *testing.T) {
	t.Parallel()
	for _, l := range tries {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			have(t, l.level)
			command := sleep()
			job, _ := shell(t, `setsid `+command+` & echo > ready; exec `+command)
			ctx, cancel := context.WithCancelCause(t.Context())
			reason := errors.New("enough")
			go when(job, func() { cancel(reason) })
			k := keeper{orders: newOrders(job, l.level)}
			if _, err := k.run(ctx, job); !errors.Is(err, reason) {
				t.Errorf("error %v, want the reason of the context", err)
			}
			gone(t, command)
		})
	}
}

// A keeper whose master is gone ends what it started.
func TestMasterGone(t *testing.T) {
	t.Parallel()
	for _, l := range tries {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			have(t, l.level)
			command := sleep()
			job, out := shell(t, `setsid `+command+` & echo > ready; exec `+command)
			k := keeper{orders: newOrders(job, l.level)}
			stdin, err := k.start(out)
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			go when(job, func() { k.alive.Close() })
			if _, err := k.listen(stdin, job); err == nil {
				t.Error("the keeper reports an orderly end")
			}
			if err := k.cmd.Wait(); err == nil {
				t.Error("the keeper ends with 0")
			}
			gone(t, command)
		})
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	job, out := shell(t, "cat > $OUT/heard")
	job.Stdin = bytes.Repeat([]byte("heard\n"), 100_000)
	job.Limits.FileBytes = 1 << 30
	end, err := Run(t.Context(), job)
	if err != nil || end.Exit != 0 {
		t.Fatalf("%+v (%v): %s", end, err, out)
	}
	heard := filepath.Join(job.Dir, "heard")
	if text, err := os.ReadFile(heard); err != nil || !bytes.Equal(text, job.Stdin) {
		t.Errorf("the program heard %d bytes (%v), want %d", len(text), err, len(job.Stdin))
	}
	if info, err := os.Stat(heard); err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Getuid() {
		t.Errorf("%+v (%v): what the program left is not ours", info, err)
	}
	want := "4096 processes"
	if os.Getuid() != 0 {
		want = " processes" // fewer where no control group can be made
	}
	if text := fmt.Sprint(end.Enforced); !strings.HasPrefix(text, "sandbox ") || !strings.Contains(text, want) {
		t.Errorf("enforced: %s", text)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*Job){
		"no program":     func(j *Job) { j.Path = "/no/such/program" },
		"no executable":  func(j *Job) { j.Path = j.Files[0].From },
		"another folder": func(j *Job) { j.Path = "/" },
	} {
		job, _ := shell(t, "exit 0")
		edit(&job)
		if _, err := Run(t.Context(), job); !registry.HasCode(err, registry.CodeUnavailable) {
			t.Errorf("%s: error %v, want CodeUnavailable", name, err)
		}
	}
}

// The same holds where this is not root's program.
func TestUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("these tests do not run as root: the others are this one")
	}
	dir := t.TempDir()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "sandbox.test")
	syscall.ForkLock.RLock() // a process that another test starts meanwhile would keep the program open for writing: "text file busy"
	err = toolchain.CopyFile(own, program)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	for path := dir; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	temp := filepath.Join(dir, "temp")
	if err := errors.Join(os.Chmod(program, 0o755), os.Mkdir(temp, 0o700), os.Chown(temp, overflowID, overflowID)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "TestLevels|TestNoLoopback|TestProcesses|TestRun$")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + temp, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: overflowID, Gid: overflowID}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A file that replaced an input after it was hashed is not shown to the program.
func TestExchangedInput(t *testing.T) {
	t.Parallel()
	for _, l := range tries {
		for _, solid := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s solid=%t", l, solid), func(t *testing.T) {
				t.Parallel()
				have(t, l.level)
				job, out := shell(t, `cat $INPUT`)
				from := job.Files[0].From
				info, err := os.Lstat(from)
				if err != nil {
					t.Fatal(err)
				}
				job.Files[0] = FileOf(info, from, job.Files[0].At, solid)
				secret := filepath.Join(t.TempDir(), "secret")
				if err := errors.Join(os.WriteFile(secret, []byte("secret"), 0o644), os.Rename(from, from+"-aside"), os.Symlink(secret, from)); err != nil {
					t.Fatal(err)
				}
				job.Most = l.Sandbox
				end, err := Run(t.Context(), job)
				if err == nil || !strings.Contains(err.Error(), "was replaced") || strings.Contains(out.String(), "secret") {
					t.Errorf("Run: %+v, %v, output %q; want an error that names the replaced file, and no secret", end, err, out)
				}
			})
		}
	}
}
