//go:build cgo

package ort

import (
	"context"

	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// Loaded is a run with its engines loaded, up to the first case.
type Loaded struct{ g *runner }

// Load loads the engines of a run of [Main], in this process.
func Load(r driverproc.Request) (Loaded, error) {
	g, err := newRunner(r, r.Run.Engines)
	return Loaded{g}, err
}

// Run does the rest, and returns the timings of the first engine.
func (l Loaded) Run(ctx context.Context) ([]int64, error) {
	results, err := l.g.run(ctx)
	if err != nil {
		return nil, err
	}
	return results[0].TimingsNS, nil
}

// Close frees the engines.
func (l Loaded) Close() error { return l.g.close() }

// InCase is the error of engine m in row 1 of b.safetensors, case 3, for a text of the library.
func InCase(text string) error {
	return caserun.InCase((&engine{id: "m"}).failed(text), "m", &caserun.Shard{Name: "b.safetensors", First: 2}, 1)
}
