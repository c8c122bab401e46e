package toolchain

import "context"

// Split returns the driver of a toolchain that compiles with one program and runs engines with another. Its identity is the
// compiler's. If this machine has no compiler, compile is nil and why tells the reason; the identity is then the runner's.
func Split(compile Driver, why error, run Driver) Driver { return split{compile, why, run} }

type split struct {
	compile Driver
	why     error
	run     Driver
}

func (s split) Identity(ctx context.Context) (Identity, error) {
	if s.compile == nil {
		return s.run.Identity(ctx)
	}
	return s.compile.Identity(ctx)
}

func (s split) Do(ctx context.Context, job Job, outDir string) (Outcome, error) {
	switch {
	case job.Verb == VerbRun || job.Verb == VerbProbe:
		return s.run.Do(ctx, job, outDir)
	case s.compile == nil:
		return Outcome{}, s.why
	}
	return s.compile.Do(ctx, job, outDir)
}

// Absent returns the driver of a program that cannot be started here: each use of it is the error why.
func Absent(why error) Driver { return absent{why} }

type absent struct{ why error }

func (a absent) Identity(context.Context) (Identity, error) { return Identity{}, a.why }

func (a absent) Do(context.Context, Job, string) (Outcome, error) { return Outcome{}, a.why }
