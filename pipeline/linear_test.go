package pipeline_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// linear compiles and runs the models that scaling writes, in this process. Each engine is the model itself.
type linear struct{}

func (linear) Identity(context.Context) (toolchain.Identity, error) {
	code := digest.FromString("linear")
	return toolchain.Identity{Name: "onnxruntime", Version: "1.30.0", Code: code, Lock: code, LibraryDigest: code}, nil
}

func (linear) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	if err := job.Validate(); err != nil {
		return toolchain.Outcome{}, err
	}
	if err := ctx.Err(); err != nil {
		return toolchain.Outcome{}, err
	}
	if err := os.MkdirAll(outDir, 0o700); err != nil {
		return toolchain.Outcome{}, err
	}
	var result any
	var err error
	switch job.Verb {
	case toolchain.VerbCompile:
		err = copyModel(job, filepath.Join(outDir, "model.onnx"))
	case toolchain.VerbRun:
		result, err = runLinear(job, outDir)
	case toolchain.VerbProbe:
		result = toolchain.ProbeResult{Tool: map[string]string{"linear": "1"}}
	default:
		err = registry.Errorf(registry.CodeInvalid, "verb %s", job.Verb)
	}
	if err != nil {
		return toolchain.Outcome{}, err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return toolchain.Outcome{}, err
	}
	files, err := toolchain.Collect(outDir)
	return toolchain.Outcome{Files: files, Result: text}, err
}

func copyModel(job toolchain.Job, to string) error {
	for _, in := range job.Inputs {
		if in.Role == toolchain.RoleModel {
			data, err := os.ReadFile(in.Path)
			if err != nil {
				return err
			}
			return os.WriteFile(to, data, 0o600)
		}
	}
	return registry.Errorf(registry.CodeInvalid, "no model")
}

// runLinear leaves the outputs of all engines. Each run takes a nanosecond for each round.
func runLinear(job toolchain.Job, outDir string) (toolchain.RunResult, error) {
	var result toolchain.RunResult
	for _, e := range job.Run.Engines {
		made := toolchain.EngineResult{ID: e.ID, LoadNS: 1}
		result.Cases = 0 // all engines run the same
		if job.Run.Shares {
			for _, p := range e.Providers {
				made.Providers = append(made.Providers, evidence.ProviderShare{Name: p.Name, Nodes: 3, TimeNS: 1})
			}
		}
		var weight float32
		for _, in := range job.Inputs {
			if in.Role == toolchain.RoleModel && in.Name == e.Path {
				data, err := os.ReadFile(in.Path)
				if err != nil {
					return result, err
				}
				if weight, err = weightOf(data); err != nil {
					return result, err
				}
			}
		}
		for _, in := range job.Inputs {
			if in.Role != toolchain.RoleCases {
				continue
			}
			cases, err := scale(in.Path, filepath.Join(outDir, "outputs", e.ID, in.Name), weight)
			if err != nil {
				return result, err
			}
			for round := range max(job.Run.Rounds, 1) {
				for range cases {
					made.TimingsNS = append(made.TimingsNS, int64(round+1))
				}
			}
			result.Cases += cases
		}
		result.Engines = append(result.Engines, made)
	}
	return result, nil
}

// scale writes y = weight * x for the cases x of a file, and returns their number.
func scale(from, to string, weight float32) (int, error) {
	f, err := tensorfile.Open(from, tensorfile.Limits{})
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, ok := f.Info("x")
	if !ok {
		return 0, registry.Errorf(registry.CodeInvalid, "cases %s: no tensor for the input x", from)
	}
	x, err := f.Rows("x", 0, info.Shape[0])
	if err != nil {
		return 0, err
	}
	y := tensor.Tensor{DType: x.DType, Shape: x.Shape}
	for i := 0; i < len(x.Data); i += 4 {
		v := math.Float32frombits(binary.LittleEndian.Uint32(x.Data[i:]))
		y.Data = binary.LittleEndian.AppendUint32(y.Data, math.Float32bits(v*weight))
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return 0, err
	}
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	return int(info.Shape[0]), tensorfile.Write(out, map[string]tensor.Tensor{"y": y}, nil)
}

// weightOf is the w of a model that scaling wrote.
func weightOf(model []byte) (w float32, err error) {
	err = registry.Errorf(registry.CodeInvalid, "no model y = w * x")
	fields(model, 7, func(graph []byte) {
		fields(graph, 5, func(initializer []byte) {
			name := ""
			fields(initializer, 8, func(text []byte) { name = string(text) })
			if name == "w" {
				err = nil
				fields(initializer, 9, func(raw []byte) { w = math.Float32frombits(binary.LittleEndian.Uint32(raw)) })
			}
		})
	})
	return w, err
}

// fields calls each with the bytes of every field of a number, up to where a message is cut.
func fields(message []byte, number protowire.Number, each func([]byte)) {
	for len(message) > 0 {
		found, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(found, kind, message)
		if size < 0 {
			return
		}
		if found == number && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			each(value)
		}
		message = message[size:]
	}
}
