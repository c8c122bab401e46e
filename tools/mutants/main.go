// Command mutants changes one expression of a package at a time, as a slip of the programmer would,
// and counts how many of the changes the package's own tests notice. It draws a random sample:
// the same seed on the same sources gives the same mutants. All of a package are compiled into one program, in which a
// variable switches one on; what does not compile that way is compiled alone. The tree is not touched, since
// `go test -overlay` reads changed files from a temporary folder.
//
//	mutants [-n 20] [-seed 1] [-jobs 2] [-skip PATTERN] [-last PATTERN] [PACKAGE...]
//
// It prints a table with a row for each package, then every mutant that lived. The exit status does not
// depend on the figures: they are a measurement.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	var o options
	flag.IntVar(&o.count, "n", 20, "mutants of each package")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the sample")
	flag.IntVar(&o.jobs, "jobs", 2, "mutants that are tested at the same time")
	flag.StringVar(&o.skip, "skip", "", "tests to leave out, as for go test, such as slow ones")
	flag.StringVar(&o.last, "last", "", "tests to run after all others and only if these pass, such as slow ones")
	flag.StringVar(&o.equivalent, "equivalent", "tools/mutants/equivalent.txt", "list of mutants that behave like the original")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

type options struct {
	count, jobs int
	seed        uint64
	equivalent  string // path
	skip, last  string // patterns of names of tests
}

// deciding are the packages that decide something, which are measured if none is named.
func deciding() []string {
	return []string{
		"./registry", "./registry/access/...", "./registry/api", "./registry/artifact", "./registry/checkpoint", "./registry/config",
		"./registry/environments", "./registry/evidence", "./registry/figure", "./registry/gate", "./registry/gc", "./registry/history",
		"./registry/internal/catalog", "./registry/node", "./registry/oci", "./registry/policy", "./registry/readiness", "./registry/restriction",
		"./registry/service/...", "./registry/storage", "./registry/trust",
		"./signer", "./validators/...", "./pipeline/approver", "./pipeline/build", "./pipeline/cases", "./pipeline/confined",
		"./pipeline/consistency", "./pipeline/diagnose", "./pipeline/divergence", "./pipeline/draft", "./pipeline/fitness", "./pipeline/goldenset", "./pipeline/ingest",
		"./pipeline/plan", "./pipeline/pull", "./pipeline/run", "./pipeline/spec", "./pipeline/tradeoff", "./pipeline/tune", "./pipeline/verify",
	}
}

func run(ctx context.Context, o options, patterns []string) error {
	if len(patterns) == 0 {
		patterns = deciding()
	}
	known, err := readEquivalent(o.equivalent)
	if err != nil {
		return err
	}
	packages, err := list(ctx, patterns)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	var tallies []tally
	for _, p := range packages {
		fmt.Fprintln(os.Stderr, "mutants:", p.name())
		var t tally
		t, err = measure(ctx, o, p, known, scratch)
		tallies = append(tallies, t)
		if err != nil {
			break
		}
	}
	report(os.Stdout, o, tallies) // also what was measured before an error or an interrupt
	if err != nil {
		return err
	}
	for _, e := range known.unused(packages) {
		fmt.Fprintf(os.Stderr, "mutants: %s: no mutant fits this line any more: %s\n", o.equivalent, e)
	}
	return nil
}

// report prints the table and the mutants that lived.
func report(w *os.File, o options, tallies []tally) {
	fmt.Fprintf(w, "up to %d mutants of each package, seed %d\n\n| package | killed | lived | share |\n|---|---|---|---|\n", o.count, o.seed)
	var killed, total int
	var lived strings.Builder
	for _, t := range tallies {
		row(w, t.pkg, t.killed, t.killed+len(t.lived))
		killed, total = killed+t.killed, total+t.killed+len(t.lived)
		for _, m := range t.lived {
			fmt.Fprintln(&lived, m)
		}
	}
	row(w, "all", killed, total)
	if lived.Len() > 0 {
		fmt.Fprintf(w, "\nLived:\n%s", lived.String())
	}
}

func row(w *os.File, name string, killed, total int) {
	share := "-"
	if total > 0 {
		share = fmt.Sprintf("%d %%", 100*killed/total)
	}
	fmt.Fprintf(w, "| `%s` | %d | %d | %s |\n", name, killed, total-killed, share)
}
