package main

import (
	"context"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
)

// cmdPython runs a program of the script with the Python of a toolchain, which has what makes models
// of its kind: onnx, or scikit-learn.
func cmdPython(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 20)
	installer := install.Installer{Root: ts.Getenv("MLPROMOTE_CACHE")}
	record, err := installer.Find(args[0])
	if err != nil {
		record, err = installer.Install(context.Background(), args[0], func(install.Progress) {})
	}
	ts.Check(err)
	ts.Check(ts.Exec(record.Interpreter(), append([]string{filepath.FromSlash(args[1])}, args[2:]...)...))
}
