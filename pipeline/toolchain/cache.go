package toolchain

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// Steps remembers what steps made, by [Key]. [Store] is one on disk; package shared has
// one in an OCI repository. It is safe for concurrent use, by several processes too.
type Steps interface {
	// Load puts the files of a step into outDir and gives its outcome, whose Cached is
	// true. Every byte is hashed on the way. Errors: CodeNotFound for a key that is not
	// there, is damaged or is not signed by a trusted builder, and then outDir is as empty as before.
	Load(ctx context.Context, key registry.Digest, outDir string) (Outcome, error)
	// Save keeps an outcome under its Key. Errors: CodeDigest for a file that changed
	// since it was made.
	Save(ctx context.Context, about About, outcome Outcome) error
}

// About is what a memory says of a step to people.
type About struct {
	Verb Verb
	Tool string // name and version
}

// exclusive is a memory that can make others wait who want to do the same step.
type exclusive interface {
	lock(ctx context.Context, key registry.Digest) (unlock func(), err error)
}

// Cache is driver with a memory: a job whose [Key] is remembered is not done again. What
// runs for its timings alone must not go through a cache. A step that cannot be kept is
// an error, since the next build would do it again without telling why. Of
// several that want the same step of one [Store], one does it and the others wait.
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

// ReadOnly is steps to which nothing is added.
func ReadOnly(steps Steps) Steps { return readOnly{steps} }

type readOnly struct{ Steps }

func (readOnly) Save(context.Context, About, Outcome) error { return nil }

// Behind is near with far behind it: what near lacks is asked of far and kept in near,
// and what is saved is saved in both.
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
