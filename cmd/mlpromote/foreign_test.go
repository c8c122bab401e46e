package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// starts is every place in the product that starts a program, with why it may. Whoever
// adds one answers: does the program see our environment (COSIGN_PASSWORD,
// MLPROMOTE_TOKEN, keys of clouds), our files, the network?
func starts() map[string]string {
	return map[string]string{
		"pipeline/toolchain/sandbox/keeper_linux.go keeper.start": "this program again, with no environment at all: the keeper of the sandbox",
		"pipeline/toolchain/sandbox/run_other.go Run":             "the program of a job, with the job's environment; these systems have no sandbox",
		"pipeline/toolchain/sandbox/program_linux.go server.fork": "the keeper's child, bounded, with the job's environment",
		"pipeline/toolchain/sandbox/program_linux.go become":      "the keeper's child becomes the program, in the sandbox, with the job's environment",
		"pipeline/toolchain/manifest/main.go compile":             "the compiler of a manifest: already in the sandbox, with the environment of drivers",
		"pipeline/toolchain/serving/process.go start":             "a model server: already in the sandbox, with the environment of drivers and what its manifest adds",
		"pipeline/toolchain/container/engine.go output":           "podman and docker, with what they find themselves by; containers see none of it",
		"pipeline/toolchain/container/run.go Image.Run":           "the same; the container has no network and sees what the job names",
		"pipeline/toolchain/install/python.go follow":             "Python, pip, Node.js and npm that make installs from our hash-locked lists: they need the network and write. A spec names none of them",
		"pipeline/origin/git.go git.run":                          "git on the repository of a spec, without hooks, filters, transports or configuration of the user; it sees PATH alone",
		"cmd/mlpromote/internal/cistep/step.go Verb.run":          "this program again, with a verb that the user named, and all that the user gave us",
		"cmd/mlpromote/internal/demo/demo.go Verb.start":          "this program again, with the verbs of the demo, without what names a registry, a database or keys",
		"registry/node/run.go Run":                                "nvidia-smi, which needs the devices of the machine; it sees PATH and LD_LIBRARY_PATH",
		"registry/oci/remote/credential.go ask":                   "credential helpers of docker, which are there for credentials of clouds; ours are taken out",
	}
}

// starting are the functions that start programs.
var starting = map[string]bool{
	"exec.Command": true, "exec.CommandContext": true, "os.StartProcess": true,
	"syscall.Exec": true, "syscall.ForkExec": true, "syscall.StartProcess": true, "unix.Exec": true,
}

// Every place that starts a program is known, and says which environment the program has:
// one without says nothing, and the program has ours.
func TestForeignPrograms(t *testing.T) {
	t.Parallel()
	known := starts()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		switch {
		case entry.IsDir() && (name == "tools" || strings.HasPrefix(entry.Name(), ".") && name != "." || isTestSupport(name)):
			return filepath.SkipDir
		case entry.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			calls, environment := started(declaration)
			if len(calls) == 0 {
				continue
			}
			place := name + " " + functionName(declaration)
			if known[place] == "" {
				t.Errorf("%s calls %s: add it to starts, with why the program may see what it sees", place, strings.Join(calls, ", "))
			}
			delete(known, place)
			if !environment && calls[0] != "syscall.Exec" {
				t.Errorf("%s does not set Env: the program would have our environment, with its secrets", place)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for place := range known {
		t.Errorf("%s starts no program: take it from starts", place)
	}
}

// isTestSupport reports whether a folder is part of tests alone.
func isTestSupport(folder string) bool {
	switch folder {
	case "cmd/mlpromote/internal/programtest", "pipeline/toolchain/toolchaintest",
		"registry/registrytest", "registry/postgres/pgtest", "cmd/mlpromote/endtoend":
		return true
	}
	return false
}

// started lists the calls in a declaration that start programs, or prepare to, and reports
// whether something sets an Env there.
func started(declaration ast.Decl) (calls []string, environment bool) {
	ast.Inspect(declaration, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && starting[of.Name+"."+n.Sel.Name] {
				calls = append(calls, of.Name+"."+n.Sel.Name)
			}
		case *ast.CompositeLit:
			if kind, ok := n.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "Cmd" {
				if of, ok := kind.X.(*ast.Ident); ok && of.Name == "exec" {
					calls = append(calls, "exec.Cmd")
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Env" {
				environment = true
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if field, ok := left.(*ast.SelectorExpr); ok && field.Sel.Name == "Env" {
					environment = true
				}
			}
		}
		return true
	})
	return calls, environment
}

// functionName is that of a function, with the type that it is a method of.
func functionName(declaration ast.Decl) string {
	f, ok := declaration.(*ast.FuncDecl)
	if !ok {
		return "(no function)"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}
