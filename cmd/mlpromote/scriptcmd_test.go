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
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

// scriptCommand is a verb of scripts.
type scriptCommand = func(ts *testscript.TestScript, neg bool, args []string)

// commands are the verbs that scripts have besides those of testscript:
//
//	example NAME           copy examples/NAME to $WORK/NAME
//	job STATE              copy digits for one target, built, verified or promoted, and go there; where scripts are served, so is its data
//	exits CODE PROG ARG... run a program that must end with this exit code; what mlpromote prints as JSON must be as its schema says
//	json VAR FILE PATH     set VAR from a JSON file or stdout, PATH such as engines.0.digest or engines.len
//	equal A B              compare two texts
//	equal-stdout TEXT      compare the last stdout, without its final newline
//	edit FILE OLD NEW      replace OLD, which the file must hold once
//	edit-all FILE OLD NEW  replace every OLD
//	help COMMAND...        the command's --help is text on stdout that begins like a sentence and shows its usage
//	flip FILE              flip a bit of one byte in the middle of the file; twice restores it
//	flip-all DIR           flip every file of a folder and of those in it
//	blob VAR DIGEST        set VAR to the path of a blob in the data directory
//	layer VAR DIGEST       set VAR to the path of the first layer of a manifest in the data directory, and HEX to the layer's digest
//	part VAR DIGEST ROLE   set VAR to the digest of the part with that role, of an index in the data directory
//	bundle VAR FILE TYPE D set VAR to the digest of the evidence of that predicate type about D, from what inspect said
//	remember               note heads and history
//	unchanged              fail unless heads and history are what they were at the last remember
//	report FILE REF ENGINE VERDICT NODE   write the predicate of a report of parity about an engine, made on a node
//	sign FILE KEY TYPE DIGEST PREDICATE   write the bundle of a statement about DIGEST, signed with a key file
//	attach VAR REF DIGEST FILE            hand a bundle about DIGEST to the registry, and set VAR to the digest of what holds it
//	refer VAR REPO DIGEST KIND FILE       push a file as referrer of DIGEST with oras-go; kinds are those of cmdRefer
//	forget REPO DIGEST     take the record of a manifest out of the database
//	recall REPO DIGEST     put it back
//	bend VAR REPO DIGEST TAG OLD NEW      store a copy of an index with OLD replaced, tag it, and set VAR to its digest
//	npz FILE NAME...       write an npz file with members of these names
//	set-case FILE TENSOR CASE VALUE       set the first element of a case, or with "all" every element, of a tensor of a safetensors file
//	images DIR             make a folder of images in subfolders for two classes
//	broken-toolchain DIR   make DIR the cache, with an install of which nothing can run, and no steps
//	authority                                  let the authority that certifies answer over HTTP (TSA, FULCIO, ID_TOKEN, PERSON_TOKEN, REGISTRY_TOKEN), and write root.json
//	certify BUNDLE TYPE DIGEST FILE CLAIM...   sign as a CI job with a certificate, and write root.json; CLAIMs are NUMBER=TEXT, no-stamp
//	age                    make the records of the catalog in PostgreSQL, and what is to be deleted, two days older
//	reset-derived          empty the tables that repeat what manifests say
//	serve VAR DIR FLAG...  serve a data directory and set VAR to the URL
//	python TOOLCHAIN FILE  run a program with the Python of a toolchain, which is installed if need be
//	browser DIR PATH JS [FLAGS]  serve DIR to Chromium, open the page, and print what an expression is there; FLAGS are of Chromium
//	certificate DIR        make ca.pem, and tls.crt and tls.key of that CA for this machine, in DIR
//	node-program           put mlpromote-node into PATH; with "shifted", one whose clock MLPROMOTE_CLOCK_SHIFT changes
//	stop-service DIR       stop the service of a data directory, which must end well
//	forged-hold REASON        hold vision/digits in prod as whoever writes to the catalog itself can, whatever the reason
//	long VAR N             set VAR to a text of N letters
//	cut-history N          delete the newest N rows of the history from the database
//	follow ARG...          start a verb that goes on until it is interrupted
//	followed FILE          wait for the next line that it prints, and write that into FILE
//	unfollow CODE          interrupt it; it must end with this exit code and print nothing more
//	kill-service DIR       end it with SIGKILL
//	registry VAR KIND      start a registry and set VAR to its host; kinds are those of cmdRegistry
//	job-on STAGING PROD    copy digits for one target, unbuilt, with the content of environments on these hosts, - for none, and go there
//	service VAR            serve .mlpromote of the script's folder and set VAR to its host
//	tag VAR REPO TAG       set VAR to the digest that a tag of HOST/REPO names
//	set-tag REPO TAG TO    make a tag of HOST/REPO name what another tag or digest names
//	rotate-tags REPO       make every tag of HOST/REPO name what the next one names
//	hostile REPO TAG NEW KEY   make of what TAG of HOST/REPO names a release NEW whose engines are pickles, and sign it with KEY
//	plant REPO TAG NEW KEY     the same with image forms that are pickles, of engines that are as they were
//	docker-config DIR HOST USER SECRET   write a docker config with this credential into DIR
func commands(j *jobs) map[string]scriptCommand {
	return map[string]scriptCommand{
		"example": cmdExample, "job": j.cmdJob, "exits": cmdExits, "json": cmdJSON, "equal": cmdEqual, "edit": cmdEdit,
		"flip": cmdFlip, "flip-all": cmdFlipAll,
		"blob": cmdBlob, "layer": cmdLayer, "part": cmdPart, "bundle": cmdBundle, "statement": cmdStatement, "remember": j.cmdRemember, "unchanged": j.cmdUnchanged,
		"edit-all": cmdEditAll, "equal-stdout": cmdEqualStdout, "help": cmdHelp,
		"registry": cmdRegistry, "job-on": cmdJobOn, "service": cmdService, "tag": cmdTag, "set-tag": cmdSetTag, "unlist": cmdUnlist, "hostile": cmdHostile, "plant": cmdPlant, "rotate-tags": cmdRotateTags, "docker-config": cmdDockerConfig,
		"python": cmdPython, "browser": cmdBrowser, "certificate": cmdCertificate, "node-program": cmdNodeProgram,
		"serve": j.cmdServe, "stop-service": cmdStopService, "kill-service": cmdKillService,
		"follow": cmdFollow, "followed": cmdFollowed, "unfollow": cmdUnfollow,
		"verify-vsa": cmdVerifyVSA, "report": cmdReport, "sign": j.cmdSign, "certify": cmdCertify, "authority": cmdAuthority, "attach": cmdAttach, "refer": cmdRefer,
		"forget": cmdForget, "recall": cmdRecall, "bend": cmdBend, "npz": cmdNpz, "set-case": cmdSetCase, "images": cmdImages,
		"age": cmdAge, "reset-derived": cmdResetDerived, "cut-history": cmdCutHistory, "forged-hold": cmdForgedHold, "long": cmdLong, "broken-toolchain": cmdBrokenToolchain,
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
	ts.Check(programtest.Example(args[0], filepath.Join(ts.Getenv("WORK"), args[0])))
}

func (j *jobs) cmdJob(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	dir := filepath.Join(ts.Getenv("WORK"), "digits")
	ts.Check(programtest.CopyTree(j.folder(ts, args[0]), dir))
	if s, ok := ts.Value(servedKey{}).(*programtest.Service); ok {
		ts.Check(take(s, filepath.Join(dir, defaultData)))
		announce(s, ts.Setenv)
	}
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
	if args[1] == "mlpromote" && ui.AsksForJSON(args[2:]) {
		if err := checkOutput(args[2:], ts.ReadFile("stdout"), got); err != nil {
			ts.Fatalf("%s: %v", args, err)
		}
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
		if key == "last" && len(v) > 0 {
			return v[len(v)-1]
		}
		if field, want, ok := strings.Cut(key, "="); ok { // the first object with this text in a field
			for _, each := range v {
				if object, ok := each.(map[string]any); ok && object[field] == want {
					return object
				}
			}
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

func cmdEqualStdout(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	if got := strings.TrimSuffix(ts.ReadFile("stdout"), "\n"); got != args[0] {
		ts.Fatalf("stdout is %q, want %q", got, args[0])
	}
}

func cmdEdit(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, 3)
	if n := edit(ts, args[0], args[1], args[2]); n != 1 {
		ts.Fatalf("%s held %q %d times, want once", args[0], args[1], n)
	}
}

func cmdEditAll(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, 3)
	if edit(ts, args[0], args[1], args[2]) == 0 {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
}

// edit replaces every old and says how many there were.
func edit(ts *testscript.TestScript, file, old, replacement string) int {
	data := ts.ReadFile(file)
	ts.Check(os.WriteFile(ts.MkAbs(file), []byte(strings.ReplaceAll(data, old, replacement)), 0o644))
	return strings.Count(data, old)
}

func cmdHelp(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 2)
	ts.Check(ts.Exec("mlpromote", append(slices.Clone(args), "--help")...))
	out := ts.ReadFile("stdout")
	if !strings.Contains(out, "Usage:\n  mlpromote "+strings.Join(args, " ")) || strings.HasPrefix(out, "Usage") || ts.ReadFile("stderr") != "" {
		ts.Fatalf("want a sentence and the usage on stdout, and nothing on stderr")
	}
}

func cmdFlip(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	flip(ts, ts.MkAbs(args[0]))
}

func cmdFlipAll(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			flip(ts, path)
		}
		return err
	}))
}

func flip(ts *testscript.TestScript, path string) {
	data, err := os.ReadFile(path)
	ts.Check(err)
	data[len(data)/2] ^= 1
	ts.Check(os.Chmod(path, 0o644)) // stored blobs are read-only
	ts.Check(os.WriteFile(path, data, 0o444))
}

// blobPath is where the data directory of the script keeps a blob.
func blobPath(ts *testscript.TestScript, d string) string {
	parsed, err := digest.Parse(d)
	ts.Check(err)
	hex := parsed.Encoded()
	return ts.MkAbs(filepath.Join(ts.Getenv("STORE"), "blobs", parsed.Algorithm().String(), hex[:2], hex))
}

func cmdBlob(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 2)
	ts.Setenv(args[0], blobPath(ts, args[1]))
}

// ociManifest is what scripts look up in manifests and indexes.
type ociManifest struct {
	Layers    []entry
	Manifests []entry
}

type entry struct {
	Digest      string
	Annotations map[string]string
}

func readManifest(ts *testscript.TestScript, d string) ociManifest {
	var m ociManifest
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(blobPath(ts, d))), &m))
	return m
}

func cmdLayer(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 2)
	layers := readManifest(ts, args[1]).Layers
	if len(layers) == 0 {
		ts.Fatalf("%s has no layers", args[1])
	}
	ts.Setenv("HEX", digest.Digest(layers[0].Digest).Encoded())
	ts.Setenv(args[0], blobPath(ts, layers[0].Digest))
}

func cmdPart(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, 3)
	for _, e := range readManifest(ts, args[1]).Manifests {
		if e.Annotations["dev.mlpromote.role"] == args[2] {
			ts.Setenv(args[0], e.Digest)
			return
		}
	}
	ts.Fatalf("%s has no part %s", args[1], args[2])
}

func cmdBundle(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 4, 4)
	var inspected struct {
		Evidence []struct{ Bundle, Subject, PredicateType string }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &inspected))
	for _, e := range inspected.Evidence {
		if e.PredicateType == args[2] && e.Subject == args[3] {
			ts.Setenv(args[0], e.Bundle)
			return
		}
	}
	ts.Fatalf("no %s about %s", args[2], args[3])
}

// cmdStatement writes the statement that a bundle signs into a file: statement FILE BUNDLE.
func cmdStatement(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 2)
	var bundle struct{ DSSEEnvelope struct{ Payload []byte } }
	layer := readManifest(ts, args[1]).Layers[0].Digest
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(blobPath(ts, layer))), &bundle))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bundle.DSSEEnvelope.Payload, 0o644))
}

// factsFile keeps what remember noted.
const factsFile = ".facts"

func (j *jobs) cmdRemember(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 0, 0)
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), factsFile), j.facts(ts), 0o644))
}

func (j *jobs) cmdUnchanged(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 0, 0)
	before, err := os.ReadFile(filepath.Join(ts.Getenv("WORK"), factsFile))
	ts.Check(err)
	if now := j.facts(ts); !bytes.Equal(before, now) {
		ts.Fatalf("heads or history changed\nbefore:\n%s\nnow:\n%s", before, now)
	}
}

// facts are heads and history, as the program tells them. What the script looks at as
// stdout and stderr stays.
func (j *jobs) facts(ts *testscript.TestScript) []byte {
	var all bytes.Buffer
	for _, args := range [][]string{{"list"}, {"history", "verify"}} {
		cmd := exec.Command(j.program, args...)
		cmd.Dir = ts.MkAbs(".")
		cmd.Env = append(os.Environ(), "MLPROMOTE_DATA="+ts.Getenv("MLPROMOTE_DATA"),
			"MLPROMOTE_REGISTRY="+ts.Getenv("MLPROMOTE_REGISTRY"), "MLPROMOTE_DATABASE="+ts.Getenv("MLPROMOTE_DATABASE"))
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
	db, err := sqlite.Open(ctx, ts.MkAbs(filepath.Join(ts.Getenv("STORE"), "registry.db")))
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
		if record.Library == "" {
			continue // no toolchain of the job
		}
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

// cmdCertificate makes a CA and a certificate of it for this machine: ca.pem, tls.crt and
// tls.key in DIR.
func cmdCertificate(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	ts.Check(registrytest.Certificate(ts.MkAbs(args[0]), "a service"))
}
