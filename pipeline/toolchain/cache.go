package toolchain

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// Steps stores the results of finished steps by [Key]. [Store] is one on disk; package
// remotecache has one in an OCI repository. It is safe for concurrent use, also by several
// processes.
type Steps interface {
	// Load puts the files of a step into outDir and returns its outcome with Cached set. It
	// hashes every byte on the way. Errors: CodeNotFound for a key that is missing, damaged or
	// not signed by a trusted builder; outDir is then as empty as before.
	Load(ctx context.Context, key registry.Digest, outDir string) (Outcome, error)
	// Save stores an outcome under its Key. Errors: CodeDigest for a file that changed since it
	// was made.
	Save(ctx context.Context, about About, outcome Outcome) error
}

// exclusive is a Steps with a lock for each step, so that two processes do not do the same step
// at once.
type exclusive interface {
	lock(ctx context.Context, key registry.Digest) (unlock func(), err error)
}

// Cache wraps a driver with a cache: a job whose [Key] is stored is not done again. Jobs that
// measure time must not go through a cache. A step that cannot be stored is an error, because
// otherwise the next build would silently do it again. If several callers want the same step of
// one [Store], one does it and the others wait.
func Cache(driver Driver, steps Steps) Driver { return cached{driver, steps} }

type cached struct {
	Driver
	steps Steps
}

func (c cached) Do(ctx context.Context, job Job, outDir string) (Outcome, error) {
	tool, err := c.Identity(ctx)
	if err != nil {
		return Outcome{}, err
	}
	key, err := Key(job, tool)
	if err != nil {
		return Outcome{}, err
	}
	if e, ok := c.steps.(exclusive); ok {
		unlock, err := e.lock(ctx, key)
		if err != nil {
			return Outcome{}, err
		}
		defer unlock()
	}
	outcome, err := c.steps.Load(ctx, key, outDir)
	if err == nil || !registry.HasCode(err, registry.CodeNotFound) {
		return outcome, err
	}
	outcome, err = c.Driver.Do(ctx, job, outDir)
	if err != nil {
		return Outcome{}, err
	}
	outcome.Key = key
	return outcome, c.steps.Save(ctx, About{job.Verb, tool.Name + " " + tool.Version}, outcome)
}

// ReadOnly wraps a Steps so that Save does nothing.
func ReadOnly(steps Steps) Steps { return readOnly{steps} }

type readOnly struct{ Steps }

func (readOnly) Save(context.Context, About, Outcome) error { return nil }

// Behind puts the cache near in front of far: Load asks far for what near does not have, and
// stores it in near. Save writes to both.
func Behind(near, far Steps) Steps { return behind{near, far} }

type behind struct{ near, far Steps }

func (b behind) Load(ctx context.Context, key registry.Digest, outDir string) (Outcome, error) {
	outcome, err := b.near.Load(ctx, key, outDir)
	if err == nil || !registry.HasCode(err, registry.CodeNotFound) {
		return outcome, err
	}
	if outcome, err = b.far.Load(ctx, key, outDir); err != nil {
		return Outcome{}, err
	}
	return outcome, b.near.Save(ctx, outcome.about, outcome)
}

func (b behind) Save(ctx context.Context, about About, outcome Outcome) error {
	if err := b.near.Save(ctx, about, outcome); err != nil {
		return err
	}
	return b.far.Save(ctx, about, outcome)
}

func (b behind) lock(ctx context.Context, key registry.Digest) (unlock func(), err error) {
	if e, ok := b.near.(exclusive); ok {
		return e.lock(ctx, key)
	}
	return func() {}, nil
}
