//go:build cgo

package validation_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// fault is put around a driver: it quantizes and compiles another model in place of the source, or
// changes what engines compute. The reference stays as it is.
type fault struct {
	source registry.Digest
	model  string                                             // path; empty for the source itself
	change func(run uint64, outputs map[string]tensor.Tensor) // of one shard; nil changes nothing
	loads  string                                             // the end of the names of engines that are changed; empty: all
	runs   *atomic.Uint64
	hits   *atomic.Uint64 // how often the fault was put in
}

// around puts the fault around a driver.
func (f fault) around(d toolchain.Driver) toolchain.Driver { return faulty{d, f} }

type faulty struct {
	toolchain.Driver
	fault
}

func (d faulty) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	if d.model != "" && (job.Verb == toolchain.VerbQuantize || job.Verb == toolchain.VerbCompile) {
		inputs := make([]toolchain.Input, len(job.Inputs))
		for i, in := range job.Inputs {
			if inputs[i] = in; in.Digest == d.source {
				other, err := toolchain.FileInput(in.Role, in.Name, d.model)
				if err != nil {
					return toolchain.Outcome{}, err
				}
				inputs[i] = other
				d.hits.Add(1)
			}
		}
		job.Inputs = inputs
	}
	outcome, err := d.Driver.Do(ctx, job, outDir)
	if err != nil || d.change == nil || job.Verb != toolchain.VerbRun {
		return outcome, err
	}
	for _, e := range job.Run.Engines {
		if e.ID == "reference" || !strings.HasSuffix(e.ID, d.loads) {
			continue
		}
		for _, in := range job.Inputs {
			if in.Role != toolchain.RoleCases {
				continue
			}
			if err := d.changeFile(filepath.Join(outDir, "outputs", e.ID, in.Name)); err != nil {
				return toolchain.Outcome{}, err
			}
		}
	}
	outcome.Files, err = toolchain.Collect(outDir)
	return outcome, err
}

// changeFile changes a file of outputs.
func (d faulty) changeFile(path string) error {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return err
	}
	outputs := make(map[string]tensor.Tensor)
	for _, name := range f.Names() {
		info, _ := f.Info(name)
		if outputs[name], err = f.Rows(name, 0, info.Shape[0]); err != nil {
			f.Close()
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	d.change(d.runs.Add(1), outputs)
	d.hits.Add(1)
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	defer to.Close()
	return tensorfile.Write(to, outputs, nil)
}

// stale gives each case what the case before it gave.
func stale(_ uint64, outputs map[string]tensor.Tensor) {
	for name, t := range outputs {
		row := len(t.Data) / int(t.Shape[0])
		data := make([]byte, len(t.Data))
		copy(data, t.Data[:row])
		copy(data[row:], t.Data)
		t.Data = data[:len(t.Data)]
		outputs[name] = t
	}
}

// jitter adds noise to every value, another one in each run: normal, of this size relative to the
// standard deviation of the output in the shard.
func jitter(size float64) func(uint64, map[string]tensor.Tensor) {
	return func(run uint64, outputs map[string]tensor.Tensor) {
		for name, t := range outputs {
			if t.DType != tensor.Float32 {
				continue
			}
			noise := rand.New(rand.NewPCG(run, 1))
			values := t.Float64s()
			spread := deviation(values)
			for i := range values {
				values[i] += size * spread * noise.NormFloat64()
			}
			outputs[name] = float32s(t.Shape, values)
		}
	}
}

// deviation is the standard deviation of the finite values.
func deviation(values []float64) float64 {
	var n, sum, squares float64
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			n, sum, squares = n+1, sum+v, squares+v*v
		}
	}
	mean := sum / max(n, 1)
	return math.Sqrt(max(squares/max(n, 1)-mean*mean, 0))
}

func float32s(shape []int64, values []float64) tensor.Tensor {
	t := tensor.Tensor{DType: tensor.Float32, Shape: shape}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(float32(v)))
	}
	return t
}
