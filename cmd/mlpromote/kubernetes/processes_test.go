//go:build linux

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry/registrytest"
)

// patience is how long anything of the cluster may take. Where it takes longer, it does not work.
const patience = 2 * time.Minute

// program is a server of the cluster, with its log in a file.
type program struct {
	name, log string
	argv      []string
	env       []string     // beside that of this process
	ready     func() error // nil when it serves

	mutex sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
}

// start starts the server and waits until it is ready.
func (p *program) start() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.CommandContext(context.Background(), p.argv[0], p.argv[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(append(os.Environ(), p.env...), "PATH="+filepath.Dir(p.argv[0])+":"+os.Getenv("PATH")) // containerd and the kubelet look for others there
	registrytest.EndWithTests(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // killed, or it says why in its log
		close(ended)
	}(p.cmd, p.ended)
	return p.await()
}

// await waits until the server is ready, or has ended.
func (p *program) await() error {
	err := eventually(func() (bool, error) {
		select {
		case <-p.ended:
			return false, fmt.Errorf("it ended: %s", p.cmd.ProcessState)
		default:
			return p.ready() == nil, nil
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", p.name, errors.Join(err, p.ready()), tail(p.log))
	}
	return nil
}

// kill ends the server at once, as a machine does that fails.
func (p *program) kill() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// eventually asks until the answer is true or an error.
func eventually(ask func() (bool, error)) error {
	deadline := time.Now().Add(patience)
	for ticker := time.NewTicker(50 * time.Millisecond); ; <-ticker.C {
		if done, err := ask(); done || err != nil {
			ticker.Stop()
			return err
		}
		if time.Now().After(deadline) {
			ticker.Stop()
			return fmt.Errorf("not within %v", patience)
		}
	}
}

// tail is the end of a log.
func tail(path string) string {
	data, _ := os.ReadFile(path)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
