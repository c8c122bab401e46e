package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// resolvePath asks for an engine of the sample by the facts of a node.
const resolvePath = "/api/v1/models/vision%2Fdigits/resolve?environment=prod&os=linux&arch=amd64&level=v2&runtime=onnxruntime:1.30.0"

// samplePeer is our service over the sample: two releases, of which one is in prod with all
// evidence about it.
func (c config) samplePeer() peer {
	return peer{ours, func(ctx context.Context, s *server) error {
		data := filepath.Join(s.dir, "data")
		if err := os.Mkdir(data, 0o700); err != nil {
			return err
		}
		if out, err := exec.CommandContext(ctx, "tar", "-xzf", c.sample, "-C", data).CombinedOutput(); err != nil {
			return fmt.Errorf("unpack %s: %w\n%s", c.sample, err, out)
		}
		return c.startServe(ctx, s, data)
	}}
}

// measureResolves compares resolve with a handler that does nothing.
func (b *bench) measureResolves(ctx context.Context) error {
	running, stop, err := fleet(ctx, b.disk, []peer{b.samplePeer(), emptyPeer()})
	if err != nil {
		return err
	}
	defer stop()
	for _, m := range []struct {
		what        string
		connections int
	}{{rowResolve, b.conns}, {rowResolveOne, 1}} {
		var all []contestant
		for _, s := range running {
			all = append(all, contestant{s.name, func(ctx context.Context, _ int) error {
				return b.loadCPU(ctx, m.what, s, resolvePath, m.connections)
			}})
		}
		if err := compare(ctx, m.what, often*b.rounds, all); err != nil {
			return err
		}
	}
	return nil
}

// loadCPU adds the rate of the answers of a server, and the processor time that it takes for one.
func (b *bench) loadCPU(ctx context.Context, what string, s *server, path string, connections int) error {
	before, err := s.cpu()
	if err != nil {
		return err
	}
	rate, all, err := s.load(ctx, path, "application/json", -1, connections, b.get)
	if err != nil {
		return err
	}
	after, err := s.cpu()
	b.results.add(what, "k requests/s", s.name, rate/1000)
	b.results.add(what+", processor time of the server", "µs/request", s.name, float64((after-before).Microseconds())/float64(all))
	return err
}
