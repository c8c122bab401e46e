package driverproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// maxResponseBytes bounds the response; a timing takes about ten bytes of it.
const maxResponseBytes = 64 << 20

// Do does a job in a process of its own, as Do of [toolchain.Driver] describes.
func Do(ctx context.Context, program Program, budget Budget,
	job toolchain.Job, outDir string) (_ toolchain.Outcome, err error) {
	if err := job.Validate(); err != nil {
		return toolchain.Outcome{}, err
	}
	outDir, err = emptyDir(outDir)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	s, err := newScratch()
	if err != nil {
		return toolchain.Outcome{}, err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	outcome, err := do(ctx,
		&process{program: program, budget: budget.with(job).withDefaults(), load: loadOf(job), devices: acceleratorsOf(job, "/"), log: tail{max: logBytes}}, s, job, outDir)
	if err != nil {
		return toolchain.Outcome{}, errors.Join(err, empty(outDir))
	}
	return outcome, nil
}

func do(ctx context.Context, p *process, s *scratch, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	if err := s.stage(job.Inputs); err != nil {
		return toolchain.Outcome{}, err
	}
	request := newRequest(p.program, job, s, outDir)
	begin := time.Now()
	quiet := follow(toolchain.ProgressOf(ctx), request.ProgressPath)
	status, enforced, err := p.run(ctx, request, s)
	quiet()
	if err != nil {
		return toolchain.Outcome{}, err
	}
	elapsed := time.Since(begin)
	if err := s.unchanged(enforced); err != nil {
		return toolchain.Outcome{}, err
	}
	response, err := p.response(s.response(), request.ID, status, job)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	files, err := p.outputs(outDir, response.Files)
	return toolchain.Outcome{Files: files, Result: response.Result, Elapsed: elapsed, Enforced: enforced}, err
}

// empty removes what a failed job has left.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

// emptyDir creates dir if it does not exist, and returns its absolute path.
func emptyDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	files, err := toolchain.Collect(dir)
	if err == nil && len(files) > 0 {
		err = registry.Errorf(registry.CodeInvalid, "output directory %s is not empty: it holds %s", dir, files[0].Name)
	}
	return dir, err
}

func newRequest(program Program, job toolchain.Job, s *scratch, outDir string) Request {
	r := Request{
		Protocol: Protocol, Verb: job.Verb, ID: uuid.NewString(), ResponsePath: s.response(), ProgressPath: s.progress(), OutDir: outDir,
		Threads: 1, Deterministic: true, Library: program.Library, Options: job.Options, Inputs: []RequestInput{},
	}
	if r.Options == nil {
		r.Options = map[string]any{}
	}
	for _, in := range s.inputs {
		r.Inputs = append(r.Inputs, RequestInput{in.Role, in.Name, in.staged})
	}
	if job.Run != nil {
		run := *job.Run
		run.Engines = nil
		for _, e := range job.Run.Engines {
			staged := toolchain.RunEngine{ID: e.ID, Path: s.path(toolchain.RoleModel, e.Path), Providers: e.Providers, Load: e.Load, ServerLoad: e.ServerLoad}
			for _, name := range e.Operators {
				staged.Operators = append(staged.Operators, s.path(toolchain.RoleOperators, name))
			}
			run.Engines = append(run.Engines, staged)
		}
		r.Threads = max(run.Threads, 1)
		r.Run = &RunRequest{run, s.role(toolchain.RoleCases), filepath.Join(outDir, "outputs")}
	}
	return r
}

// response reads the response of a process that ended with status 0 or 1.
func (p *process) response(path, id string, status int, job toolchain.Job) (Response, error) {
	text, err := readBounded(path)
	if err != nil {
		return Response{}, p.failure(ToolFailed,
			"%s ended with status %d and left no response: %v", p.program.Name, status, err)
	}
	var r Response
	if err := json.Unmarshal(text, &r); err != nil {
		return Response{}, p.failure(ToolFailed, "the response of %s is not JSON: %v", p.program.Name, err)
	}
	if r.Protocol != Protocol || r.ID != id || r.OK != (status == 0) || r.OK != (r.Error == nil) {
		return Response{}, p.failure(ToolFailed,
			"%s broke the driver protocol: protocol %q, ok %t, status %d", p.program.Name, r.Protocol, r.OK, status)
	}
	if r.OK {
		return r, nil
	}
	r.Error.Log = p.log.String()
	return Response{}, p.coded(r.Error, job)
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", filepath.Base(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxResponseBytes+1))
	if err == nil && len(text) > maxResponseBytes {
		err = fmt.Errorf("more than %d bytes", maxResponseBytes)
	}
	return text, err
}

// outputs hashes the files in outDir and compares them with those that the driver lists.
func (p *process) outputs(outDir string, listed []ResponseFile) ([]toolchain.OutputFile, error) {
	files, err := toolchain.Collect(outDir)
	if err != nil {
		return nil, err
	}
	unseen := make(map[string]ResponseFile, len(listed))
	for _, f := range listed {
		unseen[f.Path] = f
	}
	for _, f := range files {
		said, ok := unseen[f.Name]
		if !ok {
			return nil, p.failure(ToolFailed, "%s left a file that it does not list: %s", p.program.Name, f.Name)
		}
		if said.Size != f.Size || said.SHA256 != f.Digest.Encoded() {
			return nil, p.failure(ToolFailed, "%s lists %s as sha256:%s, %d bytes; it is %s, %d bytes",
				p.program.Name, f.Name, said.SHA256, said.Size, f.Digest, f.Size)
		}
		delete(unseen, f.Name)
	}
	for name := range unseen {
		return nil, p.failure(ToolFailed, "%s lists a file that it did not leave: %s", p.program.Name, name)
	}
	return files, nil
}
