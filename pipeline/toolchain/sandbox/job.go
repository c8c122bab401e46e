package sandbox

import (
	"io"
	"io/fs"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// Job is a program to run once, and everything that it may access. All paths are absolute.
type Job struct {
	Path   string    // of the executable
	Args   []string  // the first is its own name
	Env    []string  // its complete environment
	Dir    string    // working directory: one of Write
	Stdin  []byte    // its complete standard input
	Output io.Writer // its standard output and error; may be written to after Run has failed

	Read   []string // files and folders, visible at their own paths, with the targets of links
	Files  []File   // single files, visible at other paths, all below Inputs
	Inputs string   // an existing empty folder that only the sandbox uses
	Write  []string // existing folders
	// Devices are device files that the program may use as the system allows it, such as those of
	// a GPU. What their driver lets a program do, the sandbox does not restrict.
	Devices []string
	Temp    string // an existing empty folder; replaces /tmp if possible
	// Loopback lets processes of the program reach each other by 127.0.0.1, and nothing else. It needs Least to be
	// [toolchain.SandboxNamespaces]: elsewhere the address would be the machine's.
	Loopback bool

	Limits Limits
	// Most is the strongest sandbox that is tried; the zero value tries all.
	Most toolchain.Sandbox
	// Least is the weakest sandbox in which the program may run; the zero value allows none at all.
	Least toolchain.Sandbox
}

// File is a file that the program sees at another path, read-only or as a copy.
type File struct {
	At   string `json:"at"`
	From string `json:"from"` // no symbolic link
	// Solid is true if a symbolic link at At is not enough: runtimes do not follow links from
	// one file of a model to another.
	Solid bool `json:"solid"`
	// Device and Inode identify the file at From; 0 accepts any file. [FileOf] sets them.
	Device uint64 `json:"device,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
}

// FileOf makes the file at from, which has that info, visible at another path. Run fails if
// another file is at from when the program starts.
func FileOf(info fs.FileInfo, from, at string, solid bool) File {
	f := File{At: at, From: from, Solid: solid}
	f.Device, f.Inode = identity(info)
	return f
}

// check compares the file that was opened at From. Errors: CodeDigest.
func (f File) check(device, inode uint64) error {
	if f.Inode == 0 || f.Device == device && f.Inode == inode {
		return nil
	}
	return registry.Errorf(registry.CodeDigest,
		"%s was replaced by another file after it was hashed: run again when no program writes to its folder", f.From)
}

// Limits bound a program, if the system can enforce them. All must be above 0.
type Limits struct {
	CPU         time.Duration `json:"cpu"`         // of one process, in whole seconds, rounded up
	MemoryBytes int64         `json:"memoryBytes"` // private writable memory of one process
	FileBytes   int64         `json:"fileBytes"`   // of one file
	Processes   int64         `json:"processes"`   // processes and threads together, if the system does not count others too
	OpenFiles   int64         `json:"openFiles"`   // of one process
}

// End is how a program ended.
type End struct {
	Exit     int            // exit status; -1 if a signal ended it
	Signal   syscall.Signal // signal that ended it; 0 if no signal did
	CPU      time.Duration  // CPU time of the program and of the children that it waited for
	Enforced toolchain.Enforced
}

// SystemFolders returns the folders of system software, which every program can see.
func SystemFolders() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}
}
