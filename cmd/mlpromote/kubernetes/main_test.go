//go:build linux

package kubernetes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

const (
	programsVariable = "MLPROMOTE_KUBERNETES"        // folder of the programs; without it every test is skipped
	folderVariable   = "MLPROMOTE_KUBERNETES_FOLDER" // of the cluster; set inside of the namespaces alone
)

// TestMain runs the tests in namespaces of their own, in which the cluster runs too. When the process of the tests ends,
// however it ends, the kernel ends everything that it started, with its mounts and its network.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(programsVariable) == "" {
		return m.Run() // in which every test is skipped
	}
	if folder := os.Getenv(folderVariable); folder != "" {
		if err := furnish(folder); err != nil {
			fmt.Fprintln(os.Stderr, "the namespaces of the cluster:", err)
			return 1
		}
		return programtest.Main{M: m}.Run()
	}
	code, err := isolated()
	if err != nil {
		fmt.Fprintln(os.Stderr, "no cluster on this machine:", err)
		return 1
	}
	return code
}

// isolated runs this process once more, in namespaces of its own, and removes what they leave behind.
func isolated() (code int, err error) {
	if os.Getuid() != 0 {
		return 0, errors.New("containerd and the kubelet need root")
	}
	folder, err := os.MkdirTemp("", "mlpromote-kubernetes-")
	if err != nil {
		return 0, err
	}
	if os.Getenv("MLPROMOTE_KUBERNETES_KEEP") == "" {
		defer os.RemoveAll(folder)
	}
	runtime.LockOSThread() // the kernel ends the child when the thread that started it ends
	defer runtime.UnlockOSThread()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	child := exec.Command(self, os.Args[1:]...)
	child.Env = append(os.Environ(), folderVariable+"="+folder, "TMPDIR="+filepath.Join(folder, "tmp"))
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	err = child.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		code, err = max(exit.ExitCode(), 1), nil
	}
	return code, errors.Join(err, removeGroups(cgroup(folder)))
}

// cgroup is the name of the control group of all pods of the cluster in a folder.
func cgroup(folder string) string { return "/" + filepath.Base(folder) }

// removeGroups removes a control group, and those below it, from every hierarchy. Its processes have ended.
func removeGroups(name string) error {
	var folders []string
	for _, pattern := range []string{"/sys/fs/cgroup" + name, "/sys/fs/cgroup/*" + name} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, root := range found {
			err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					folders = append(folders, path)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	var errs []error
	for _, folder := range slices.Backward(folders) { // a folder comes before those in it
		errs = append(errs, syscall.Rmdir(folder))
	}
	return errors.Join(errs...)
}

// nodeAddress is the address of the node and of every server on it. TEST-NET-1 is nobody's.
const nodeAddress = "192.0.2.1"

// kubeletWrites are the settings of the kernel, below /proc/sys, that the kubelet changes for the whole machine.
var kubeletWrites = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// furnish makes the namespaces that this process is in fit for a node: a network with a loopback alone, and in place of
// what a node writes on a machine, copies in a folder.
func furnish(folder string) error {
	errs := []error{
		os.Mkdir(filepath.Join(folder, "tmp"), 0o755),
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""), // with containers, and with nothing outside
		syscall.Mount("proc", "/proc", "proc", 0, ""),
		syscall.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"),
	}
	for _, written := range []string{"/var/lib", "/var/log"} {
		upper, work := filepath.Join(folder, written), filepath.Join(folder, "work", written)
		errs = append(errs, os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755),
			syscall.Mount("overlay", written, "overlay", 0, "lowerdir="+written+",upperdir="+upper+",workdir="+work))
	}
	copies := map[string]string{
		"/etc/hosts":       "127.0.0.1 localhost\n" + nodeAddress + " " + nodeName + " kubernetes.default.svc.cluster.local " + registryName + "\n",
		"/etc/resolv.conf": "",
	}
	for _, setting := range kubeletWrites {
		value, err := os.ReadFile(filepath.Join("/proc/sys", setting))
		errs = append(errs, err)
		copies[filepath.Join("/proc/sys", setting)] = string(value)
	}
	for path, text := range copies {
		copied := filepath.Join(folder, "copies", path)
		errs = append(errs, os.MkdirAll(filepath.Dir(copied), 0o755), os.WriteFile(copied, []byte(text), 0o644),
			syscall.Mount(copied, path, "", syscall.MS_BIND, ""))
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"}, {"address", "add", nodeAddress + "/32", "dev", "lo"},
		{"route", "add", serviceIPs, "dev", "lo", "src", nodeAddress}, // for servers that ask a Service; kube-proxy takes it from there
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("ip %s: %w: %s", args, err, out))
		}
	}
	return errors.Join(append(errs, syscall.Sethostname([]byte(nodeName)))...)
}
