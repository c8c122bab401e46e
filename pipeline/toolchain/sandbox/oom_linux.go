package sandbox

import "os"

// oomScore decides which process the kernel ends first if memory is short. A program inherits the highest score, so that the kernel
// ends it, and not the process that reports how it ended. The zero oomScore changes nothing.
type oomScore struct {
	file *os.File
	own  []byte
}

// openOOMScore opens the score of this process, while /proc is in reach.
func openOOMScore() oomScore {
	const path = "/proc/self/oom_score_adj"
	own, err := os.ReadFile(path)
	if err != nil {
		return oomScore{}
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return oomScore{}
	}
	return oomScore{file, own}
}

// first makes this process, and those that it starts, the first that the kernel ends.
func (o oomScore) first() { o.set([]byte("1000")) }

func (o oomScore) restore() { o.set(o.own) }

func (o oomScore) set(score []byte) {
	if o.file != nil {
		_, _ = o.file.Write(score) // where it is refused, the kernel ends the largest process
	}
}
