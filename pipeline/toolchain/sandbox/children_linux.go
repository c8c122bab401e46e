package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// children lists the processes whose parent is this one.
func children() []int {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var found []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		// The program name, in parentheses, may contain any character.
		_, rest, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
		fields := bytes.Fields(rest)
		pid, errPID := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if len(fields) < 2 || errPID != nil {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil && parent == os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}
