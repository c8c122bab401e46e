package driverproc

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// InProcess does a job by a handler in this process, on the user's files. It is for our own code that needs the network, such as to ask a
// server elsewhere. It returns errors as [Do] does.
func InProcess(ctx context.Context, name string, job toolchain.Job, outDir string, handle Handler) (toolchain.Outcome, error) {
	if err := job.Validate(); err != nil {
		return toolchain.Outcome{}, err
	}
	outDir, err := emptyDir(outDir)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	request := Request{Protocol: Protocol, Verb: job.Verb, ID: uuid.NewString(), OutDir: outDir, Options: job.Options}
	for _, in := range job.Inputs {
		request.Inputs = append(request.Inputs, RequestInput{in.Role, in.Name, in.Path})
	}
	if job.Run != nil {
		request.Run = &RunRequest{RunOptions: *job.Run, OutputsDir: filepath.Join(outDir, "outputs")}
	}
	begin := time.Now()
	result, listed, err := work(ctx, request, handle)
	p := &process{program: Program{Name: name}}
	if err == nil {
		var files []toolchain.OutputFile
		files, err = p.outputs(outDir, listed)
		return toolchain.Outcome{Files: files, Result: result, Elapsed: time.Since(begin)}, err
	}
	if ctx.Err() != nil {
		return toolchain.Outcome{}, context.Cause(ctx)
	}
	if told := new(Error); errors.As(err, &told) {
		err = p.coded(told, job)
	} else {
		err = registry.Errorf(registry.CodeInternal, "%s: %w", name, err)
	}
	return toolchain.Outcome{}, errors.Join(err, empty(outDir))
}
