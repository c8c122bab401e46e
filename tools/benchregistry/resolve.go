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
		return start(ctx, s, nil, c.mlpromote, "serve", "--listen", "127.0.0.1:0", "--data", data)
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
				rate, err := s.load(ctx, resolvePath, "application/json", -1, m.connections, b.get)
				b.results.add(m.what, "k requests/s", s.name, rate/1000)
				return err
			}})
		}
		if err := compare(ctx, m.what, often*b.rounds, all); err != nil {
			return err
		}
	}
	return nil
}
