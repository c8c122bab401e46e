package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// program is mlpromote, and the toolchains that it knows.
type program struct {
	path  string
	tools []tool
}

type tool struct {
	Name, Version, State string
	Installs             []struct{ Interpreter string }
}

func newProgram(path string) (program, error) {
	p := program{path: path}
	out, err := p.call(".", "toolchain", "list", "--output", "json")
	if err != nil {
		return p, fmt.Errorf("list: %w: %s", err, out)
	}
	return p, json.Unmarshal(out, &p.tools)
}

// title is a toolchain with its version, for a cell.
func (p program) title(name string) string {
	for _, t := range p.tools {
		if t.Name == name {
			return name + " " + t.Version
		}
	}
	return name
}

func (p program) installed(name string) bool {
	for _, t := range p.tools {
		if t.Name == name {
			return t.State == "installed"
		}
	}
	return false
}

// call gives what the program prints: its result, or all that it says where it fails.
func (p program) call(dir string, args ...string) ([]byte, error) {
	return execute(dir, nil, p.path, args...)
}

// try does the same where a failure of the program is a result. ok is false if it failed.
func try(dir string, environment []string, path string, args ...string) (out []byte, ok bool, err error) {
	out, err = execute(dir, environment, path, args...)
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return out, false, nil
	}
	return out, err == nil, err
}

func execute(dir string, environment []string, path string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(context.Background(), path, args...) // it ends with this program
	var out, all bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &all
	cmd.Env = append(append(os.Environ(), "COSIGN_PASSWORD="), environment...)
	if err := cmd.Run(); err != nil {
		return all.Bytes(), err
	}
	return out.Bytes(), nil
}

// maxReason is the maximum length of a reason.
const maxReason = 300

// reason is the one sentence of an error, for a cell, without the folder in which the program ran.
func reason(out []byte, dir string) string {
	for line := range strings.Lines(string(out)) {
		if _, message, ok := strings.Cut(line, "mlpromote: error: "); ok {
			return cell(strings.ReplaceAll(strings.TrimSpace(message), dir+"/", ""))
		}
	}
	return "no build"
}

// cell is a message as a table can have it.
func cell(message string) string {
	message = strings.ReplaceAll(message, "|", "/")
	if len(message) > maxReason {
		return strings.ToValidUTF8(message[:maxReason], "") + "…"
	}
	return message
}
