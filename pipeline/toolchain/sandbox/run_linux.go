package sandbox

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// collectAt is the usual percentage of garbage at which a keeper collects it ([noGC]).
const collectAt = 100

// entered is true once Enter was called, so this program can be started as a keeper.
var entered atomic.Bool

// Enter must be the first call in the main function of every program that uses [Run], also of
// test programs. If keeper is true, this process was started as a keeper and has done its work;
// it must exit with status.
func Enter() (exit int, keeper bool) {
	switch os.Args[0] {
	case keeperName:
		debug.SetGCPercent(collectAt)
		return serve(), true
	case programName:
		return become(), true
	}
	entered.Store(true)
	return 0, false
}

// Run runs the program of the job in the strongest sandbox that works here and waits for it. If
// ctx ends first, Run ends the program and returns the error of ctx. No process that the
// program started remains. Errors: CodeUnavailable for a program that does not start;
// CodeInternal for a sandbox that cannot be set up.
func Run(ctx context.Context, job Job) (End, error) {
	if !entered.Load() {
		return End{}, registry.Errorf(registry.CodeInternal,
			"this program does not call sandbox.Enter first, so it cannot run %s in a sandbox", job.Path)
	}
	if _, err := os.Stat(job.Path); err != nil {
		return End{}, registry.Lastingf(registry.CodeUnavailable, "start %s: %w", job.Path, err)
	}
	l, lacks := strongest(job.Most)
	if !l.reaches(job.Least) {
		return End{}, registry.Lastingf(registry.CodeUnavailable, "%s runs only in the sandbox %q, which this machine does not allow: %s",
			job.Args[0], job.Least, strings.Join(lacks, "; "))
	}
	readOnly := l.Sandbox != toolchain.SandboxNone
	if l.Sandbox == toolchain.SandboxLandlock {
		version, err := landlockVersion()
		if err != nil {
			return End{}, err
		}
		readOnly = version >= landlockTruncate
	}
	if l.Sandbox != toolchain.SandboxNamespaces {
		if err := place(job.Files, readOnly); err != nil {
			return End{}, err
		}
	}
	k := keeper{orders: newOrders(job, l)}
	end, err := k.run(ctx, job)
	if k.orders.User != nil {
		err = errors.Join(err, giveBack(job))
	}
	end.Enforced.Inputs = toolchain.InputsCopied
	if readOnly {
		end.Enforced.Inputs = toolchain.InputsReadOnly
	}
	end.Enforced.Lacks = append(lacks, end.Enforced.Lacks...)
	return end, err
}
