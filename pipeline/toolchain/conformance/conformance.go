package conformance

import (
	"context"
	"os"
)

// Check is one promise of the protocol.
type Check struct {
	Name string
	// Promise is the driver's duty, as a sentence.
	Promise string
	// Runs is true if the check runs an engine, which drivers that only compile cannot.
	Runs bool
	// Speaks is true if the check is about the protocol of a compiler, which one with a command line does not speak.
	Speaks bool
	do     func(ctx context.Context, s *session) error
}

// Checks returns all checks, in the order in which a writer of a driver meets them.
func Checks() []Check {
	return []Check{
		{Name: "identity", Promise: "name, version and code are known and stay the same, and probe confirms the version", do: identity},
		{Name: "compile", Promise: "an engine has its entry, and the bytes that the profile promises", do: compileTwice},
		{Name: "run", Promise: "each case has outputs, a load time and a timing in each round", Runs: true, do: run},
		{Name: "right", Promise: "the outputs are right", Runs: true, do: right},
		{Name: "repeat", Promise: "two processes compute the same bytes", Runs: true, do: repeat},
		{Name: "order", Promise: "the outputs of a case do not depend on the cases before it", Runs: true, do: order},
		{Name: "engines", Promise: "engines that take turns in one process have outputs of their own", Runs: true, do: engines},
		{Name: "batch", Promise: "cases with a batch dimension of their own have the same outputs", Runs: true, do: batch},
		{Name: "batches", Promise: "batches of two have the outputs of their cases", Runs: true, do: batches},
		{Name: "empty job", Promise: "a compilation without a model is refused", do: refuses(withoutModel)},
		{Name: "garbage model", Promise: "a file that is no model is refused", do: refuses(garbageModel)},
		{Name: "unknown option", Promise: "an option of the compiler that it does not know is refused", Speaks: true, do: refuses(unknownOption)},
		{Name: "unknown verb", Promise: "a verb that it does not have is refused", Speaks: true, do: refuses(unknownVerb)},
		{Name: "no cases", Promise: "a run without cases is refused", Runs: true, do: refuses(withoutCases)},
		{Name: "garbage engine", Promise: "a file that is no engine is refused", Runs: true, do: refuses(garbageEngine)},
		{Name: "unknown load option", Promise: "a load option that it does not know is refused", Runs: true, do: refuses(unknownLoadOption)},
		{Name: "stop", Promise: "a job that is stopped ends, and leaves nothing", do: stop},
	}
}

// Run does a check in a folder of its own. It returns nil if the driver keeps the promise, and a [Skipped] if the check does
// not apply to it.
func (c Check) Run(ctx context.Context, of *Subject) error {
	if c.Runs && of.Profile.CompileOnly {
		return Skipped("nothing runs its engines")
	}
	if c.Speaks && of.CommandLine {
		return Skipped("its compiler has a command line, which the manifest writes")
	}
	dir, err := os.MkdirTemp(of.Scratch, "check-*")
	if err != nil {
		return err
	}
	return c.do(ctx, &session{Subject: of, dir: dir})
}
