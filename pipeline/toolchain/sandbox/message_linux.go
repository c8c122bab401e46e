package sandbox

import (
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// keeperName is the argv[0] of the keeper. No file has this name.
const keeperName = "mlpromote: sandbox"

// The keeper's file descriptors beyond the standard ones. It reads its orders from one; when
// that closes, the parent process has ended. It writes reports to the other.
const (
	ordersFD = 3
	reportFD = 4
)

// orders are the parent's instructions to the keeper.
type orders struct {
	Probe bool  `json:"probe"` // only set up the sandbox
	Job   wire  `json:"job"`
	Level level `json:"level"`
	User  *user `json:"user,omitempty"` // user of the program, if it differs from the keeper's
}

// wire is a Job without the parts that are sent through pipes.
type wire struct {
	Path    string   `json:"path"`
	Args    []string `json:"args"`
	Env     []string `json:"env"`
	Dir     string   `json:"dir"`
	Read    []string `json:"read"`
	Files   []File   `json:"files"`
	Inputs  string   `json:"inputs"`
	Write   []string `json:"write"`
	Devices []string `json:"devices,omitempty"`
	Temp    string   `json:"temp"`
	Loop    bool     `json:"loopback,omitempty"`
	Limits  Limits   `json:"limits"`
}

// user is an unprivileged user.
type user struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

// report is one message of the keeper: that the program started with these restrictions, that
// it ended, or why it did not start.
type report struct {
	Started *toolchain.Enforced `json:"started,omitempty"`
	Ended   *ended              `json:"ended,omitempty"`
	Failed  string              `json:"failed,omitempty"`
	// Program is true if starting the program failed, and false if the sandbox failed.
	Program bool `json:"program,omitempty"`
}

type ended struct {
	Status uint32        `json:"status"` // as wait(2) returns it
	CPU    time.Duration `json:"cpu"`
	Left   int           `json:"left,omitempty"` // processes that could not be ended
}
