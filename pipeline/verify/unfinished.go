package verify

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/history"
)

// unfinishedFor is how long what a broken off verification has run is good for. Later the
// machine may have become another one.
const unfinishedFor = 72 * time.Hour

// unfinished remembers the outputs of a verification until it has its reports, so that one
// that breaks off can be gone on with. Its zero value remembers nothing.
type unfinished struct {
	dir    string
	unlock func()
	began  Beginning // of the first verification that ran anything of it
}

// begin reads the newest event of a model, before anything is run.
func begin(ctx context.Context, env *run.Env, model string) (Beginning, error) {
	began := Beginning{StartedOn: env.Time().UTC()}
	events, err := env.Registry.History(ctx, history.HistoryQuery{Model: model, Descending: true, Limit: 1})
	if len(events) > 0 {
		began.History = events[0].Hash
	}
	return began, err
}

// openUnfinished finds what an earlier verification of the same release by the same
// program on the same kind of machine has left. A folder that cannot be written to, that others can write to, or in
// which another one works now, remembers nothing: that costs time and no proof.
func openUnfinished(v Session) (unfinished, error) {
	if v.Env.Unfinished == "" || v.Env.Server != "" {
		return unfinished{}, nil
	}
	forgetOld(v)
	// Runtimes choose their number of threads by the cores, and sums can depend on it.
	key, err := registry.CanonicalDigest(map[string]any{"v": 3,
		"release": v.Release.Digest, "node": v.Node, "cores": runtime.NumCPU(), "tool": v.Env.Tool})
	if err != nil {
		return unfinished{}, err
	}
	if !ours(v.Env.Unfinished) {
		return unfinished{}, nil
	}
	claimed := claimUnfinished(filepath.Join(v.Env.Unfinished, key.Encoded()))
	if claimed.dir == "" {
		return unfinished{}, nil
	}
	if claimed.began, err = keepBeginning(filepath.Join(claimed.dir, "began.json"), v.Began); err != nil {
		claimed.unlock()
		return unfinished{}, nil //nolint:nilerr // without it nothing may be taken over, and all is run again
	}
	if v.Env.Time().Sub(claimed.began.StartedOn) >= unfinishedFor { // another one holds it, or it could not be removed
		claimed.unlock()
		return unfinished{}, nil
	}
	return claimed, nil
}

// keepBeginning gives what an earlier verification wrote, or writes when this one began.
func keepBeginning(path string, now Beginning) (Beginning, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = json.Marshal(now); err != nil {
			return Beginning{}, err
		}
		return now, atomicfile.Write(path, data, 0o600)
	}
	var earlier Beginning
	return earlier, errors.Join(err, json.Unmarshal(data, &earlier))
}

// ours makes a folder if it is not there, and reports whether nobody but this user can write to it: what lies there is
// signed as if it was run here.
func ours(dir string) bool {
	if os.MkdirAll(dir, 0o700) != nil {
		return false
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int64(owner.Uid) == int64(os.Geteuid()) && info.Mode().Perm()&0o022 == 0
}

func claimUnfinished(dir string) unfinished {
	if !ours(dir) {
		return unfinished{}
	}
	unlock, err := toolchain.TryLockFile(filepath.Join(dir, "running"), true)
	if err != nil {
		return unfinished{}
	}
	return unfinished{dir: dir, unlock: unlock}
}

// forgetOld removes outputs of verifications that were not continued. Its age is that of the lock file, which is
// made when the verification begins and never written to.
func forgetOld(v Session) {
	kept, err := os.ReadDir(v.Env.Unfinished)
	if err != nil {
		return // so there is nothing that could be taken over either
	}
	for _, entry := range kept {
		lock := filepath.Join(v.Env.Unfinished, entry.Name(), "running")
		if info, err := os.Stat(lock); err != nil || v.Env.Time().Sub(info.ModTime()) < unfinishedFor {
			continue
		}
		if unlock, err := toolchain.TryLockFile(lock, true); err == nil {
			_ = os.RemoveAll(filepath.Dir(lock)) // what is left of it is tried the next time
			unlock()
		}
	}
}

// driver is driver with the memory.
func (u unfinished) driver(driver toolchain.Driver) toolchain.Driver {
	if u.dir == "" {
		return driver
	}
	return toolchain.Cache(driver, optional{toolchain.NewStore(u.dir)})
}

// close keeps what is remembered for the next time, or forgets it where the verification
// has come to its end.
func (u unfinished) close(finished bool) error {
	if u.dir == "" {
		return nil
	}
	defer u.unlock()
	if finished {
		return os.RemoveAll(u.dir)
	}
	return nil
}

// optional is steps that need not be kept: a full disk must not fail a verification.
type optional struct{ toolchain.Steps }

func (o optional) Save(ctx context.Context, about toolchain.About, outcome toolchain.Outcome) error {
	err := o.Steps.Save(ctx, about, outcome)
	if registry.HasCode(err, registry.CodeDigest) || errors.Is(err, ctx.Err()) {
		return err
	}
	return nil
}
