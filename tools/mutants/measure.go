package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// pkg is a package as `go list -json` describes it.
type pkg struct {
	Dir, ImportPath, Name     string
	GoFiles, CgoFiles         []string
	TestGoFiles, XTestGoFiles []string
	Module                    struct{ Path, Dir string }
}

// alsoTestedBy names, for a package, another one with tests of it: a suite of registry/registrytest that runs with a real
// database, or tests of several packages together. These tests count too.
func alsoTestedBy() map[string]string {
	return map[string]string{
		"registry/internal/catalog": "registry/sqlite",
		"registry/api":              "registry/policy", "registry/artifact": "registry/policy", "registry/evidence": "registry/policy",
		"registry/readiness": "registry/policy", "registry/restriction": "registry/policy", "registry/storage": "registry/policy",
		"registry/trust": "registry/policy",
		"pipeline/build": "pipeline", "pipeline/diagnose": "pipeline", "pipeline/draft": "pipeline", "pipeline/goldenset": "pipeline",
		"pipeline/ingest": "pipeline", "pipeline/run": "pipeline", "pipeline/tune": "pipeline", "pipeline/verify": "pipeline",
		"registry/service/attachment": "registry/service", "registry/service/audit": "registry/service", "registry/service/backend": "registry/service",
		"registry/service/documents": "registry/service", "registry/service/heads": "registry/service", "registry/service/lookup": "registry/service",
		"registry/service/promotion": "registry/service", "registry/service/resolution": "registry/service", "registry/service/rollback": "registry/service",
	}
}

// suite is the tests of one package.
type suite struct{ importPath, dir string }

// suites are the tests that count for p.
func (p pkg) suites() []suite {
	all := []suite{{p.ImportPath, p.Dir}}
	if other, ok := alsoTestedBy()[p.name()]; ok {
		all = append(all, suite{p.Module.Path + "/" + other, filepath.Join(p.Module.Dir, filepath.FromSlash(other))})
	}
	return all
}

// name is the path inside the module.
func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, p.Module.Path+"/") }

// list gives the packages that fit the patterns.
func list(ctx context.Context, patterns []string) ([]pkg, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var packages []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

// tally is what became of the mutants of a package.
type tally struct {
	pkg    string
	killed int
	lived  []mutant
}

// measure tests a sample of a package's mutants. With an error it returns what it had until then.
func measure(ctx context.Context, o options, p pkg, known *equivalents, scratch string) (tally, error) {
	t := tally{pkg: p.name()}
	drawn, err := sample(o.seed, p, known)
	if err != nil {
		return t, err
	}
	program, err := assemble(ctx, p, drawn[:min(o.count, len(drawn))], filepath.Join(scratch, strings.ReplaceAll(p.name(), "/", "-")))
	if err != nil {
		return t, err
	}
	program.skip, program.last = o.skip, o.last
	begin := time.Now()
	if out, err := program.run(ctx, 0, 20*time.Minute); err != nil {
		return t, fmt.Errorf("tests of %s fail without a change: %w\n%s", t.pkg, err, out)
	}
	limit := 3*time.Since(begin) + 30*time.Second
	var mu sync.Mutex
	next, useless := 0, 0
	// As many are taken as the sample has, and one more for each that does not compile: which ones does
	// not depend on how many run at the same time.
	take := func() (m mutant, number int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(drawn) || next-useless == o.count {
			return m, 0, false
		}
		next++
		return drawn[next-1], next, true
	}
	var group errgroup.Group
	for range min(o.jobs, o.count) {
		group.Go(func() error {
			for {
				m, number, ok := take()
				if !ok {
					return nil
				}
				outcome, err := program.try(ctx, m, number, filepath.Join(scratch, fmt.Sprintf("%s-%d", filepath.Base(p.Dir), number)), limit)
				if err != nil {
					return err
				}
				mu.Lock()
				switch outcome {
				case killed:
					t.killed++
				case lived:
					t.lived = append(t.lived, m)
					fmt.Fprintf(os.Stderr, "%s (%d of %d lived)\n", m, len(t.lived), t.killed+len(t.lived))
				case broken:
					useless++
				}
				mu.Unlock()
			}
		})
	}
	err = group.Wait()
	slices.SortFunc(t.lived, func(a, b mutant) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.start, b.start)) })
	return t, err
}

// sample lists all mutants of a package in a random order that depends on the seed and the package alone.
func sample(seed uint64, p pkg, known *equivalents) ([]mutant, error) {
	var all []mutant
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		data, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		found, err := mutants(filepath.ToSlash(filepath.Join(p.name(), name)), data)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if !known.has(m) {
				all = append(all, m)
			}
		}
	}
	hash := fnv.New64a()
	hash.Write([]byte(p.name()))
	random := rand.New(rand.NewPCG(seed, hash.Sum64())) //nolint:gosec // a sample need not be secret
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}

// outcome is what the tests said about a mutant.
type outcome string

const (
	killed outcome = "killed" // a test failed, or the tests did not end in time
	lived  outcome = "lived"  // all tests passed
	broken outcome = "broken" // it does not compile
)

// try runs the tests on a mutant, from the program if that has it.
func (p program) try(ctx context.Context, m mutant, number int, scratch string, limit time.Duration) (outcome, error) {
	if !p.has[number] {
		return alone(ctx, p, m, scratch, limit)
	}
	_, err := p.run(ctx, number, limit)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return lived, nil
	}
	return killed, nil
}

// alone compiles and runs the package's tests on a mutant.
func alone(ctx context.Context, program program, m mutant, scratch string, limit time.Duration) (outcome, error) {
	p := program.pkg
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(scratch, filepath.Base(m.file)), filepath.Join(scratch, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(p.Dir, filepath.Base(m.file)): changed}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(changed, m.apply(), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return "", err
	}
	out, err := program.test(ctx, overlay, limit)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return lived, nil
	case bytes.Contains(out, []byte("[build failed]")):
		return broken, nil
	}
	return killed, nil
}

// test runs the tests of the package with the files of the overlay. The limit is as for [program.run].
func (p program) test(ctx context.Context, overlay string, limit time.Duration) (out []byte, err error) {
	for _, chosen := range p.rounds("-") {
		if out, err = p.goTest(ctx, append(chosen, "-count=1", "-vet=off", "-timeout", limit.String(), "-overlay", overlay), limit); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (p program) goTest(ctx context.Context, flags []string, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Minute)
	defer cancel()
	args := append([]string{"test"}, flags...)
	for _, s := range p.pkg.suites() {
		args = append(args, s.importPath)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.WaitDelay = p.pkg.Module.Dir, 10*time.Second
	cmd.Env = append(os.Environ(), "RAPID_NOFAILFILE=1") // or a killed mutant leaves a file in testdata
	return cmd.CombinedOutput()
}
