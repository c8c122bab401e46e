// Command benchregistry measures `mlpromote serve` beside other servers of the same
// protocol, beside nginx and beside what the work costs without any server. All of them
// are real processes on loopback, and one client speaks to all: oras-go, and for many
// small requests a client that costs next to nothing, since it shares the processors.
//
// What is compared is measured in turns: every round has each server once, in random
// order, so that a disturbance hits all of them alike, and a ratio is taken within its
// round. stdout is Markdown; stderr says how far it is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sizes is how much is measured.
type sizes struct {
	rounds    int
	blob      int64 // bytes that are pushed, pulled and mounted
	rss       int64 // bytes that are pushed while the memory of the server is watched
	artifacts int
	workers   int           // who push the artifacts
	get       time.Duration // of requests for a manifest, per server and round
	conns     int           // that the requests come on
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchregistry:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	var c config
	n := sizes{rounds: 5, blob: 1 << 30, rss: 4 << 30, artifacts: 200, workers: 8, get: 2 * time.Second, conns: 64}
	flags := flag.NewFlagSet("benchregistry", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "about a minute: 3 rounds, 256 MiB, and 512 MiB for memory")
	empty := flags.Bool("empty-handler", false, "be a server whose chi handler does nothing")
	flags.IntVar(&n.rounds, "rounds", n.rounds, "rounds of every measurement")
	flags.Int64Var(&n.blob, "blob", n.blob, "bytes to push, pull and mount")
	flags.Int64Var(&n.rss, "rss", n.rss, "bytes to push while memory is watched")
	flags.IntVar(&n.artifacts, "artifacts", n.artifacts, "small artifacts to push")
	flags.IntVar(&n.workers, "workers", n.workers, "clients that push them")
	flags.IntVar(&n.conns, "connections", n.conns, "connections that ask for manifests")
	flags.DurationVar(&n.get, "get", n.get, "time of manifest requests, per server and round")
	flags.StringVar(&c.mlpromote, "mlpromote", "../../bin/mlpromote", "program to measure")
	flags.StringVar(&c.distribution, "distribution", "../distribution/bin/registry", "program of CNCF distribution")
	flags.StringVar(&c.sample, "sample", "../../cmd/mlpromote/testdata/format-1.tar.gz", "data directory to resolve in, as .tar.gz")
	flags.StringVar(&c.disk, "disk", os.TempDir(), "folder on a disk")
	flags.StringVar(&c.memory, "tmpfs", "/dev/shm", "folder in memory")
	flags.StringVar(&c.only, "only", "", "measure only what has this in its name: push, pull, small, manifest, mount, attach, resolve, memory")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *empty {
		return serveNothing(ctx)
	}
	if *quick {
		n.rounds, n.blob, n.rss, n.artifacts, n.get = 3, 256<<20, 512<<20, 100, 500*time.Millisecond
	}
	b, err := newBench(c, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.measure(ctx); err != nil {
		return err
	}
	b.results.markdown(os.Stdout)
	return nil
}
