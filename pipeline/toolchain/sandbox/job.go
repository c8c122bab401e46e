package sandbox

import (
	"io"
	"io/fs"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
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
	// Device and Inode are those of the file that From must still lead to; 0 accepts any file.
	// [FileOf] sets them.
	Device uint64 `json:"device,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
}

// FileOf shows the file at from, which has that info, at another path. Run fails if another file
// is at from when the program starts.
func FileOf(info fs.FileInfo, from, at string, solid bool) File {
	f := File{At: at, From: from, Solid: solid}
	f.Device, f.Inode = identity(info)
	return f
}

// check compares the file found at From. Errors: CodeDigest.
func (f File) check(device, inode uint64) error {
	if f.Inode == 0 || f.Device == device && f.Inode == inode {
		return nil
	}
	return registry.Errorf(registry.CodeDigest,
		"%s was replaced by another file after it was hashed: run again when no program writes to its folder", f.From)
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
	CPU      time.Duration  // that it and the children that it waited for took
	Enforced toolchain.Enforced
}

// SystemFolders have the system software, which every program sees.
func SystemFolders() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}
}
