//go:build cgo

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/registry/sqlite"
)

// command is a verb of scripts.
type command = func(ts *testscript.TestScript, neg bool, args []string)

// commands are the verbs that scripts have besides those of testscript:
//
//	example NAME           copy examples/NAME to $WORK/NAME
//	job STATE              copy digits for one target, built, verified or promoted, and go there
//	exits CODE PROG ARG... run a program that must end with this exit code
//	json VAR FILE PATH     set VAR from a JSON file or stdout, PATH such as engines.0.digest or engines.len
//	equal A B              compare two texts
//	edit FILE OLD NEW      replace every OLD, of which there must be one
//	flip FILE [OFFSET]     flip a bit of one byte, in the middle of the file by default; twice restores it
//	blob VAR DIGEST        set VAR to the path of a blob in .mlpromote
//	layer VAR DIGEST [N]   set VAR to the path of a layer's blob, of a manifest in .mlpromote
//	remember               note heads and history
//	unchanged              fail unless heads and history are what they were at the last remember
//	broken-toolchain DIR   make DIR the cache, with an install of which nothing can run, and no steps
//	reset-derived          empty the tables that repeat what manifests say
func commands(j *jobs) map[string]command {
	return map[string]command{
		"example": cmdExample, "job": j.cmdJob, "exits": cmdExits, "json": cmdJSON, "equal": cmdEqual, "edit": cmdEdit,
		"flip": cmdFlip, "blob": cmdBlob, "layer": cmdLayer, "remember": cmdRemember, "unchanged": cmdUnchanged,
		"reset-derived": cmdResetDerived, "broken-toolchain": cmdBrokenToolchain,
	}
}

// want ends the script unless a verb has its arguments, at least and at most so many.
func want(ts *testscript.TestScript, neg bool, args []string, least, most int) {
	if neg || len(args) < least || len(args) > most {
		ts.Fatalf("want %d to %d arguments, and no !; see commands", least, most)
	}
}

func cmdExample(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	ts.Check(copyTree(filepath.Join(examples, args[0]), filepath.Join(ts.Getenv("WORK"), args[0])))
}

func (j *jobs) cmdJob(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	dir := filepath.Join(ts.Getenv("WORK"), "digits")
	ts.Check(copyTree(j.folder(ts, args[0]), dir))
	ts.Check(ts.Chdir(dir))
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 100)
	code, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var ended *exec.ExitError
	got := 0
	if errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != code {
		ts.Fatalf("exit code %d, want %d", got, code)
	}
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, 3)
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile(args[1])))
	decoder.UseNumber()
	var value any
	ts.Check(decoder.Decode(&value))
	if decoder.More() {
		ts.Fatalf("%s holds more than one JSON document", args[1])
	}
	for key := range strings.SplitSeq(args[2], ".") {
		value = member(ts, value, key)
	}
	text, ok := value.(string)
	if !ok {
		encoded, err := json.Marshal(value)
		ts.Check(err)
		text = string(encoded)
	}
	ts.Setenv(args[0], text)
}

func member(ts *testscript.TestScript, value any, key string) any {
	switch v := value.(type) {
	case map[string]any:
		if inner, ok := v[key]; ok {
			return inner
		}
	case []any:
		if key == "len" {
			return len(v)
		}
		if i, err := strconv.Atoi(key); err == nil && i < len(v) {
			return v[i]
		}
	}
	ts.Fatalf("no %s in %.200v", key, value)
	return nil
}

func cmdEqual(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || (args[0] == args[1]) == neg {
		ts.Fatalf("%q: want two texts, and them equal (different with !)", args)
	}
}

func cmdEdit(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, 3)
	data := ts.ReadFile(args[0])
	if n := strings.Count(data, args[1]); n != 1 {
		ts.Fatalf("%s holds %q %d times, want once", args[0], args[1], n)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(data, args[1], args[2], 1)), 0o644))
}

func cmdFlip(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 2)
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	offset := len(data) / 2
	if len(args) == 2 {
		offset, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	data[offset] ^= 1
	ts.Check(os.Chmod(path, 0o644)) // stored blobs are read-only
	ts.Check(os.WriteFile(path, data, 0o444))
}

// blobPath is where .mlpromote of the script's folder keeps a blob.
func blobPath(ts *testscript.TestScript, d string) string {
	parsed, err := digest.Parse(d)
	ts.Check(err)
	hex := parsed.Encoded()
	return ts.MkAbs(filepath.Join(".mlpromote", "blobs", parsed.Algorithm().String(), hex[:2], hex))
}

func cmdBlob(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 2)
	ts.Setenv(args[0], blobPath(ts, args[1]))
}

func cmdLayer(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 3)
	var manifest struct {
		Layers []struct{ Digest string }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(blobPath(ts, args[1]))), &manifest))
	n := 0
	if len(args) == 3 {
		var err error
		n, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	if n >= len(manifest.Layers) {
		ts.Fatalf("manifest %s has %d layers", args[1], len(manifest.Layers))
	}
	ts.Setenv(args[0], blobPath(ts, manifest.Layers[n].Digest))
}

// factsFile keeps what remember noted.
const factsFile = ".facts"

func cmdRemember(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 0, 0)
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), factsFile), facts(ts), 0o644))
}

func cmdUnchanged(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 0, 0)
	before, err := os.ReadFile(filepath.Join(ts.Getenv("WORK"), factsFile))
	ts.Check(err)
	if now := facts(ts); !bytes.Equal(before, now) {
		ts.Fatalf("heads or history changed\nbefore:\n%s\nnow:\n%s", before, now)
	}
}

// facts are heads and history, as the program tells them. What the script looks at as
// stdout and stderr stays.
func facts(ts *testscript.TestScript) []byte {
	var all bytes.Buffer
	for _, args := range [][]string{{"list"}, {"history", "verify"}} {
		cmd := exec.Command("mlpromote", args...)
		cmd.Dir = ts.MkAbs(".")
		cmd.Env = append(os.Environ(), "MLPROMOTE_DATA="+ts.Getenv("MLPROMOTE_DATA"))
		out, err := cmd.Output()
		if err != nil {
			ts.Fatalf("mlpromote %s: %v", strings.Join(args, " "), err)
		}
		fmt.Fprintf(&all, "%s", out)
	}
	return all.Bytes()
}

func cmdResetDerived(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 0, 0)
	ctx := context.Background()
	db, err := sqlite.Open(ctx, ts.MkAbs(".mlpromote/registry.db"))
	ts.Check(err)
	ts.Check(errors.Join(db.ResetDerived(ctx), db.Close()))
}

// cmdBrokenToolchain copies the records of installs, and nothing that they name but
// files of the same names and sizes.
func cmdBrokenToolchain(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	broken := ts.MkAbs(args[0])
	installs := filepath.Join(ts.Getenv("MLPROMOTE_CACHE"), "toolchains")
	records, err := filepath.Glob(filepath.Join(installs, "*", "record.json"))
	ts.Check(err)
	for _, path := range records {
		var record struct {
			Library     string
			LibrarySize int64
		}
		text := ts.ReadFile(path)
		ts.Check(json.Unmarshal([]byte(text), &record))
		dir := filepath.Join(broken, "toolchains", filepath.Base(filepath.Dir(path)))
		hollow(ts, filepath.Join(dir, "venv", "bin", "python"), 0)
		hollow(ts, filepath.Join(dir, filepath.FromSlash(record.Library)), record.LibrarySize)
		ts.Check(os.WriteFile(filepath.Join(dir, "record.json"), []byte(text), 0o644))
	}
	ts.Setenv("MLPROMOTE_CACHE", broken)
}

// hollow makes a file of zeros, with its folders.
func hollow(ts *testscript.TestScript, path string, size int64) {
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	ts.Check(os.WriteFile(path, nil, 0o644))
	ts.Check(os.Truncate(path, size))
}
