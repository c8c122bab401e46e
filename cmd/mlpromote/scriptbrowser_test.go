package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
)

// cmdBrowser serves a folder to Chromium, with the files of onnxruntime-web below /ort/, opens a page there, and
// prints what an expression of JavaScript is on it, as JSON.
func cmdBrowser(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, 4)
	installer := install.Installer{Root: ts.Getenv("MLPROMOTE_CACHE")}
	record, err := installer.Find("onnxruntime-web")
	if err != nil {
		record, err = installer.Install(context.Background(), "onnxruntime-web", func(install.Progress) {})
	}
	ts.Check(err)
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	dist := filepath.Join(record.Dir, "node_modules", "onnxruntime-web", "dist")
	mux.Handle("/ort/", http.StripPrefix("/ort/", http.FileServer(http.Dir(dist))))
	server := httptest.NewServer(mux)
	defer server.Close()
	options := []string{"-eval", args[2]}
	if len(args) == 4 {
		options = append(options, "-flags", args[3])
	}
	ts.Check(ts.Exec(browserProgram(), append(options, server.URL+args[1])...))
}

// browserProgram is tools/pagecheck, which drives Chromium; empty where `make test` found no Chromium.
func browserProgram() string { return os.Getenv("MLPROMOTE_PAGECHECK") }
