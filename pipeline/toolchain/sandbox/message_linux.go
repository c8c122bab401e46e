package sandbox

import (
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// keeperName is the argv[0] of the keeper. No file is called so.
const keeperName = "mlpromote: sandbox"

// The keeper's descriptors beyond the standard ones. It reads its orders from one and
// takes the end of that as the end of the parent process; it reports on the other.
const (
	ordersFD = 3
	reportFD = 4
)

// orders is what the keeper is to do.
type orders struct {
	Probe bool  `json:"probe"` // set the sandbox up, start nothing
	Job   wire  `json:"job"`
	Level level `json:"level"`
	User  *user `json:"user,omitempty"` // that the program runs as, if that is not the keeper's user
}

// wire is a Job without what passes through pipes.
type wire struct {
	Path   string   `json:"path"`
	Args   []string `json:"args"`
	Env    []string `json:"env"`
	Dir    string   `json:"dir"`
	Read   []string `json:"read"`
	Files  []File   `json:"files"`
	Inputs string   `json:"inputs"`
	Write  []string `json:"write"`
	Temp   string   `json:"temp"`
	Limits Limits   `json:"limits"`
}

// user is an unprivileged user.
type user struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

// report is one line of the keeper's: that the program started under these bounds, that
// it ended, or why it did not start.
type report struct {
	Started *toolchain.Enforced `json:"started,omitempty"`
	Ended   *ended              `json:"ended,omitempty"`
	Failed  string              `json:"failed,omitempty"`
	// Program is true where what failed is to start the program, not the sandbox.
	Program bool `json:"program,omitempty"`
}

type ended struct {
	Status uint32        `json:"status"` // as wait(2) gives it
	CPU    time.Duration `json:"cpu"`
	Left   int           `json:"left,omitempty"` // processes that could not be ended
}
