package registrytest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// DockerRegistry starts Debian's docker-registry on a free port of the loopback address, with its content in
// dir. It returns the address, and a function that ends the process. Errors: the program is not installed, or
// did not log its address within a minute.
func DockerRegistry(dir string) (host string, stop func(), err error) {
	config := filepath.Join(dir, "config.yml")
	err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(config,
		[]byte("version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: "+dir+"}}\nhttp: {addr: \"127.0.0.1:0\"}\n"), 0o600))
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "docker-registry", "serve", config)
	logs, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return "", nil, err
	}
	address := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		listening(logs, address)
	}()
	stop = func() {
		cancel()
		<-done
		_ = cmd.Wait() // it was killed
	}
	select {
	case host := <-address:
		return host, stop, nil
	case <-done:
	case <-time.After(time.Minute):
	}
	stop()
	return "", nil, errors.New("docker-registry does not say where it listens")
}

// listening reads the log to its end and sends the address in it.
func listening(logs io.Reader, address chan<- string) {
	where := regexp.MustCompile(`listening on (127\.0\.0\.1:[0-9]+)`)
	for lines := bufio.NewScanner(logs); lines.Scan(); {
		if found := where.FindStringSubmatch(lines.Text()); found != nil {
			select {
			case address <- found[1]:
			default:
			}
		}
	}
}
