package driverproc

import (
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// look is how often a driver's progress is looked at.
const look = time.Second

// follow tells, until the function that it returns is called, how far the driver says that it is.
func follow(tell func(done, of int), path string) (stop func()) {
	if tell == nil {
		return func() {}
	}
	ended := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() {
		ticker := time.NewTicker(look)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				if done, of, ok := readProgress(path); ok {
					tell(done, of)
				}
			}
		}
	})
	return func() {
		close(ended)
		working.Wait()
	}
}

// readProgress reads two numbers from a file that the driver writes while it runs. The driver is
// not trusted: a link is not followed, and a pipe not waited for.
func readProgress(path string) (done, of int, ok bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0, 0, false
	}
	_, err = fmt.Fscanf(io.LimitReader(f, 64), "%d %d", &done, &of)
	return done, of, err == nil && 0 <= done && done <= of
}

// Tell writes for [Request.ProgressPath] how many runs are done. It is for drivers in Go; an error is
// of no consequence. An empty path tells nothing.
func Tell(path string, done, of int) {
	if path != "" {
		_ = os.WriteFile(path, fmt.Appendf(nil, "%d %d\n", done, of), 0o600)
	}
}
