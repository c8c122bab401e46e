package driverproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/registry"
)

// Script runs a program that is no driver, once, and returns the bytes of the one file that it leaves, of
// which there may be so many. It sees the inputs read-only at in/<role>/<name>; args makes its arguments
// from the folder in and from the path that the file must have. Sandbox and environment are those of a
// job. Errors: CodeUnavailable if it does not start, or not in the sandbox that the budget asks for;
// CodeInvalid for a program that ends with another status than 0, uses up its budget, or leaves no such
// file.
func Script(ctx context.Context, program Program, args func(in, result string) []string,
	budget Budget, inputs []toolchain.Input, most int64) (result []byte, err error) {
	s, err := newScratch()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	if err := s.stage(inputs); err != nil {
		return nil, err
	}
	path := filepath.Join(s.answer(), "result")
	program.Args = append([]string{program.Path}, args(s.in(), path)...)
	budget.FileBytes = most
	p := &process{program: program, budget: budget.withDefaults(), log: tail{max: logBytes}}
	end, enforced, err := p.start(ctx, s, sandbox.Job{Files: s.files()})
	if err == nil {
		err = p.succeeded(end)
	}
	if err == nil {
		err = s.unchanged(enforced)
	}
	if err != nil {
		return nil, err
	}
	if result, err = readFile(path, most); err != nil {
		return nil, p.scriptFailed("left no result: %v", err)
	}
	return result, nil
}

// succeeded returns an error that says how a program ended, if its status is not 0.
func (p *process) succeeded(end sandbox.End) error {
	if end.Exit == 1 {
		return p.scriptFailed("ended with exit status 1")
	}
	if _, err := p.evaluate(end); err != nil {
		return registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	return nil
}

func (p *process) scriptFailed(format string, args ...any) error {
	log := p.log.String()
	text := p.program.Name + " " + fmt.Sprintf(format, args...)
	if last := lastLines(log); last != "" { // one line, since reports have it and logs may quote cases
		text += ": " + last[strings.LastIndexByte(last, '\n')+1:]
	}
	return registry.Errorf(registry.CodeInvalid, "%s", text)
}

// readFile reads a regular file of at most so many bytes.
func readFile(path string, most int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, errors.New("no file")
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return data, err
}
