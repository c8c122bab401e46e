// Command runner is a template of a runner in Go, by the standard library alone. It speaks the driver protocol (docs/reference/driver.md):
// this file and safetensors.go stay as they are, and engine.go is where your runtime goes.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const protocol = "mlpromote.driver/v1"

type request struct {
	Protocol, Verb, ID string
	ResponsePath       string `json:"response_path"`
	ProgressPath       string `json:"progress_path"`
	OutDir             string `json:"out_dir"`
	Inputs             []struct{ Role, Name, Path string }
	Run                struct {
		OutputsDir     string   `json:"outputs_dir"`
		SelectOutputs  []string `json:"select_outputs"`
		Order          string
		Rounds, Warmup int
		Engines        []struct {
			ID, Path string
			Load     map[string]string
		}
	}
}

// refused is an error with a code of the protocol.
type refused struct{ code, message string }

func (r refused) Error() string { return r.message }

func bad(format string, args ...any) error { return refused{"bad_input", fmt.Sprintf(format, args...)} }

type file struct {
	Path   string `json:"path"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
}

type result struct {
	ID      string  `json:"id"`
	Load    int64   `json:"load_ns"`
	Timings []int64 `json:"timings_ns"`
}

func main() {
	var r request
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		fmt.Fprintln(os.Stderr, "request:", err)
		os.Exit(2)
	}
	response := map[string]any{"protocol": protocol, "id": r.ID}
	answer, err := answer(r)
	files, errFiles := listing(r.OutDir)
	if err = errors.Join(err, errFiles); err != nil {
		of := refused{"tool_failed", err.Error()}
		errors.As(err, &of)
		response["ok"], response["error"] = false, map[string]string{"code": of.code, "message": err.Error()}
	} else {
		response["ok"], response["result"], response["files"] = true, answer, files
	}
	text, err2 := json.Marshal(response)
	if err := errors.Join(err2, os.WriteFile(r.ResponsePath, text, 0o600)); err != nil {
		fmt.Fprintln(os.Stderr, "response:", err)
		os.Exit(2)
	}
	if err != nil {
		os.Exit(1)
	}
}

func answer(r request) (any, error) {
	switch {
	case r.Protocol != protocol:
		return nil, bad("protocol %q: this runner speaks %s", r.Protocol, protocol)
	case r.Verb == "probe":
		return map[string]any{"tool": map[string]string{toolchain: version()}}, nil
	case r.Verb != "run":
		return nil, bad("verb %q: this runner has probe and run", r.Verb)
	}
	groups := [][]int{{}}
	for i := range r.Run.Engines {
		groups[0] = append(groups[0], i)
	}
	if r.Run.Order != "interleaved" { // one engine after the other, else in turns
		groups = slices.Collect(slices.Chunk(groups[0], 1))
	}
	var all []*result
	cases := 0
	for _, group := range groups {
		results, n, err := runGroup(r, group)
		if err != nil {
			return nil, err
		}
		all, cases = append(all, results...), n
	}
	return map[string]any{"cases": cases, "engines": all}, nil
}

// runGroup runs engines in turns, case by case.
func runGroup(r request, group []int) (results []*result, cases int, err error) {
	shards, err := readShards(r)
	if err != nil {
		return nil, 0, err
	}
	var runs []func(keep bool, shard *shard, row int) error
	var finish []func() error
	for _, i := range group {
		asked := r.Run.Engines[i]
		began := time.Now()
		engine, err := load(asked.Path, asked.Load)
		if err != nil {
			return nil, 0, err
		}
		of := &result{ID: asked.ID, Load: int64(time.Since(began))}
		for _, s := range shards {
			if err := s.fits(engine); err != nil {
				return nil, 0, err
			}
		}
		out := &collected{folder: filepath.Join(r.Run.OutputsDir, asked.ID), names: engine.Outputs(), only: r.Run.SelectOutputs}
		results, finish = append(results, of), append(finish, out.check)
		runs = append(runs, func(keep bool, s *shard, row int) error {
			feed, batched := s.feed(engine, row)
			began := time.Now()
			made, err := engine.Run(feed)
			took := int64(time.Since(began))
			if err == nil && keep {
				err = out.add(s, made, batched)
			}
			of.Timings = append(of.Timings, max(took, 1))
			return err
		})
	}
	for _, check := range finish {
		err = errors.Join(err, check())
	}
	for i := 0; i < r.Run.Warmup && err == nil; i++ {
		for _, run := range runs {
			err = errors.Join(err, run(false, shards[0], i%shards[0].cases))
		}
	}
	for _, of := range results {
		of.Timings = nil
	}
	for round := range max(r.Run.Rounds, 1) {
		cases = 0
		for _, s := range shards {
			for row := 0; row < s.cases && err == nil; row++ {
				for _, run := range runs {
					err = errors.Join(err, run(round == 0, s, row))
				}
			}
			cases += s.cases
		}
		slices.Reverse(runs)
	}
	return results, cases, err
}

// listing is every file below a folder.
func listing(dir string) ([]file, error) {
	files := []file{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		sum := sha256.Sum256(text)
		name, _ := filepath.Rel(dir, path)
		files = append(files, file{filepath.ToSlash(name), len(text), hex.EncodeToString(sum[:])})
		return err
	})
	return files, err
}
