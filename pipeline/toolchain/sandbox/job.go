package sandbox

import (
	"io"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// Job is a program to run once, and all that it may touch. All paths are absolute.
type Job struct {
	Path   string    // of the executable
	Args   []string  // the first is its own name
	Env    []string  // all of its environment
	Dir    string    // working directory: one of Write
	Stdin  []byte    // all of its standard input
	Output io.Writer // its standard output and error; may be written to after Run has failed

	Read   []string // files and folders, seen at their own paths, with what their paths link to
	Files  []File   // single files, seen under other paths, all of them below Inputs
	Inputs string   // a folder that is there and empty; of the sandbox alone
	Write  []string // folders that are there
	Temp   string   // a folder that is there and empty; stands in for /tmp where that can be

	Limits Limits
	// Most is the strongest sandbox that is tried; the zero value tries all.
	Most toolchain.Sandbox
}

// File is a file that the program sees, read-only or as a copy, at another path.
type File struct {
	At   string `json:"at"`
	From string `json:"from"` // no symbolic link
	// Solid is true where a symbolic link at At would not do: runtimes refuse to follow
	// one from a file of a model to another.
	Solid bool `json:"solid"`
}

// Limits bound a program, where the system can do it. All must be above 0.
type Limits struct {
	CPU         time.Duration `json:"cpu"`         // of one process, in whole seconds, rounded up
	MemoryBytes int64         `json:"memoryBytes"` // private writable memory of one process
	FileBytes   int64         `json:"fileBytes"`   // of one file
	Processes   int64         `json:"processes"`   // and threads, all together, where no others count
	OpenFiles   int64         `json:"openFiles"`   // of one process
}

// End is how a program ended.
type End struct {
	Exit     int            // status; -1 where a signal ended it
	Signal   syscall.Signal // that ended it; 0 for none
	CPU      time.Duration  // that it and those whom it waited for took
	Enforced toolchain.Enforced
}
