package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// tolerance is how far an output may be from the right one, as a share of the largest right value: engines may compute in half
// precision.
const tolerance = 0.01

const (
	engineID  = "engine"
	shardName = "cases.safetensors"
	rounds    = 2
)

func identity(ctx context.Context, s *session) error {
	var seen [2]toolchain.Identity
	for i := range seen {
		driver, err := s.New(ctx)
		if err != nil {
			return err
		}
		if seen[i], err = driver.Identity(ctx); err != nil {
			return err
		}
	}
	first := seen[0]
	if first.Name != s.Profile.Name || first.Version == "" || first.Code.Validate() != nil || len(first.Versions) == 0 {
		return fmt.Errorf("the identity is not complete: %+v", first)
	}
	if !reflect.DeepEqual(first, seen[1]) {
		return fmt.Errorf("the identity changed from %+v to %+v", first, seen[1])
	}
	outcome, err := s.do(ctx, toolchain.Job{Verb: toolchain.VerbProbe})
	if s.Profile.CompileOnly && registry.HasCode(err, registry.CodeUnavailable) {
		return nil // a compiler that a manifest describes answers no probe
	}
	if err != nil {
		return err
	}
	if err := s.valid("probeResult", outcome.Result); err != nil {
		return err
	}
	var probe toolchain.ProbeResult
	if err := json.Unmarshal(outcome.Result, &probe); err != nil {
		return fmt.Errorf("the result of probe: %w", err)
	}
	return confirms(probe.Tool, first.Versions)
}

// confirms checks the versions that a running tool answers with by those of its identity.
func confirms(answered, recorded map[string]string) error {
	confirmed := false
	for name, version := range answered {
		of, ok := recorded[name]
		if ok && of != version {
			return fmt.Errorf("probe answers %s %s, and its identity has %s", name, version, of)
		}
		confirmed = confirmed || ok
	}
	if !confirmed {
		return fmt.Errorf("probe answers %v, and its identity has none of these: %v", answered, recorded)
	}
	return nil
}

func compileTwice(ctx context.Context, s *session) error {
	engine, err := s.made(ctx)
	if err != nil {
		return err
	}
	twin, err := s.compile(ctx, s.Model)
	if err != nil {
		return err
	}
	if s.Profile.Reproducible == evidence.ReproducibleBytes && !maps.Equal(digests(engine), digests(twin)) {
		return fmt.Errorf("two processes made %v and %v", digests(engine), digests(twin))
	}
	return nil
}

// runJob runs an engine on cases.
func (s *session) runJob(ctx context.Context, cases string) (toolchain.Job, error) {
	engine, err := s.made(ctx)
	if err != nil {
		return toolchain.Job{}, err
	}
	return s.jobOf(cases, map[string]toolchain.Outcome{engineID: engine})
}

// jobOf runs engines on cases, in turns.
func (s *session) jobOf(cases string, engines map[string]toolchain.Outcome) (toolchain.Job, error) {
	shard, err := toolchain.FileInput(toolchain.RoleCases, shardName, cases)
	job := toolchain.Job{
		Verb: toolchain.VerbRun, Inputs: []toolchain.Input{shard},
		Run: &toolchain.RunOptions{Rounds: rounds, Warmup: 1, Level: s.Profile.Level},
	}
	if len(engines) > 1 {
		job.Run.Order = toolchain.OrderInterleaved
	}
	for _, id := range slices.Sorted(maps.Keys(engines)) {
		job.Run.Engines = append(job.Run.Engines, toolchain.RunEngine{ID: id, Path: id + "/" + s.Profile.Entry})
		for _, f := range engines[id].Files {
			in, errFile := toolchain.FileInput(toolchain.RoleModel, id+"/"+f.Name, f.Path)
			job.Inputs, err = append(job.Inputs, in), errors.Join(err, errFile)
		}
	}
	return job, err
}

func run(ctx context.Context, s *session) error {
	job, err := s.runJob(ctx, s.Cases)
	if err != nil {
		return err
	}
	outcome, err := s.do(ctx, job)
	if err != nil {
		return err
	}
	if _, ok := outcome.File(outputFile); !ok || len(outcome.Files) != 1 {
		return fmt.Errorf("it left %v, want %s alone", slices.Sorted(maps.Keys(digests(outcome))), outputFile)
	}
	if err := s.valid("runResult", outcome.Result); err != nil {
		return err
	}
	result, err := outcome.RunResult(*job.Run)
	if err != nil {
		return err
	}
	if e := result.Engines[0]; result.Cases != s.Count || len(e.TimingsNS) != rounds*s.Count || e.LoadNS <= 0 || slices.Min(e.TimingsNS) <= 0 {
		return fmt.Errorf("the result has %d cases, %d timings and a load time of %d ns, want %d cases, %d timings and times above 0",
			result.Cases, len(e.TimingsNS), e.LoadNS, s.Count, rounds*s.Count)
	}
	return nil
}

const outputFile = "outputs/" + engineID + "/" + shardName

// outputs runs an engine on cases, and reads what it computed.
func (s *session) outputs(ctx context.Context, cases string) (map[string]tensor.Tensor, error) {
	engine, err := s.made(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.outputsOf(ctx, cases, map[string]toolchain.Outcome{engineID: engine})
	return all[engineID], err
}

// outputsOf runs engines on cases, and reads what each computed.
func (s *session) outputsOf(ctx context.Context, cases string, engines map[string]toolchain.Outcome) (map[string]map[string]tensor.Tensor, error) {
	job, err := s.jobOf(cases, engines)
	if err != nil {
		return nil, err
	}
	outcome, err := s.do(ctx, job)
	if err != nil {
		return nil, err
	}
	all := make(map[string]map[string]tensor.Tensor)
	for id := range engines {
		name := "outputs/" + id + "/" + shardName
		f, ok := outcome.File(name)
		if !ok {
			return nil, fmt.Errorf("it left no %s", name)
		}
		if all[id], err = tensorfile.ReadFile(f.Path, tensorfile.Limits{}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// order runs the cases in reverse. A program that keeps something of one case for the next computes others then.
func order(ctx context.Context, s *session) error {
	tensors, err := tensorfile.ReadFile(s.Cases, tensorfile.Limits{})
	if err != nil {
		return err
	}
	back := filepath.Join(s.dir, "reverse.safetensors")
	f, err := os.Create(back)
	if err != nil {
		return err
	}
	if err := errors.Join(tensorfile.Write(f, reversed(tensors), nil), f.Close()); err != nil {
		return err
	}
	want, err := s.outputs(ctx, s.Cases)
	if err != nil {
		return err
	}
	got, err := s.outputs(ctx, back)
	if err != nil {
		return err
	}
	if name := different(want, reversed(got)); name != "" {
		return fmt.Errorf("output %s of the cases in reverse order differs from that of the same cases in order", name)
	}
	return nil
}

// reversed returns tensors with their cases in reverse order.
func reversed(tensors map[string]tensor.Tensor) map[string]tensor.Tensor {
	back := make(map[string]tensor.Tensor, len(tensors))
	for name, v := range tensors {
		cases := 1
		if len(v.Shape) > 0 && v.Shape[0] > 0 {
			cases = int(v.Shape[0])
		}
		rows := slices.Collect(slices.Chunk(v.Data, max(len(v.Data)/cases, 1)))
		slices.Reverse(rows)
		v.Data = slices.Concat(rows...)
		back[name] = v
	}
	return back
}

// different names an output that has other bytes, or "".
func different(want, got map[string]tensor.Tensor) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !bytes.Equal(want[name].Data, got[name].Data) {
			return name
		}
	}
	return ""
}

const otherID = "other"

// engines runs the engines of two models in turns. A program that keeps one engine for all, or that recognises the cases, has the
// outputs of one for both.
func engines(ctx context.Context, s *session) error {
	if s.Other == "" {
		return Skipped("there is no other model for it")
	}
	first, err := s.made(ctx)
	if err != nil {
		return err
	}
	second, err := s.compile(ctx, s.Other)
	if err != nil {
		return err
	}
	want := make(map[string]map[string]tensor.Tensor)
	for id, engine := range map[string]toolchain.Outcome{engineID: first, otherID: second} {
		alone, err := s.outputsOf(ctx, s.Cases, map[string]toolchain.Outcome{id: engine})
		if err != nil {
			return err
		}
		want[id] = alone[id]
	}
	if different(want[engineID], want[otherID]) == "" {
		return errors.New("the engines of two models with other weights have the same outputs")
	}
	got, err := s.outputsOf(ctx, s.Cases, map[string]toolchain.Outcome{engineID: first, otherID: second})
	if err != nil {
		return err
	}
	for _, id := range []string{engineID, otherID} {
		if name := different(want[id], got[id]); name != "" {
			return fmt.Errorf("output %s of an engine differs if another engine takes turns with it", name)
		}
	}
	return nil
}

func right(ctx context.Context, s *session) error { return s.rightOn(ctx, s.Cases) }

// batches runs the cases as batches of two.
func batches(ctx context.Context, s *session) error {
	pairs := filepath.Join(s.dir, "pairs.safetensors")
	if err := reshaped(s.Cases, pairs, func(shape []int64) []int64 { return append([]int64{shape[0] / 2, 2}, shape[1:]...) }); err != nil {
		return err
	}
	return s.rightOn(ctx, pairs)
}

// rightOn compares the outputs of cases with the right ones, of which they have as many rows.
func (s *session) rightOn(ctx context.Context, cases string) error {
	if s.Want == "" {
		return Skipped("the right outputs of this model are not known")
	}
	want, err := tensorfile.ReadFile(s.Want, tensorfile.Limits{})
	if err != nil {
		return err
	}
	got, err := s.outputs(ctx, cases)
	if err != nil {
		return err
	}
	for name, w := range want {
		g, ok := got[name]
		if !ok {
			return fmt.Errorf("there is no output %s: there are %v", name, slices.Sorted(maps.Keys(got)))
		}
		if width := len(w.Shape) - 1; g.DType != w.DType || g.Len() != w.Len() || len(g.Shape) <= width || !slices.Equal(g.Shape[len(g.Shape)-width:], w.Shape[1:]) {
			return fmt.Errorf("output %s is %s %v, want %s %v", name, g.DType, g.Shape, w.DType, w.Shape)
		}
		values, wanted := g.Float64s(), w.Float64s()
		largest := 0.0
		for _, v := range wanted {
			largest = max(largest, math.Abs(v))
		}
		for i := range wanted {
			if !(math.Abs(values[i]-wanted[i]) <= tolerance*largest) {
				return fmt.Errorf("output %s: element %d of %v is %v, want %v", name, i, w.Shape, values[i], wanted[i])
			}
		}
	}
	return nil
}

func repeat(ctx context.Context, s *session) error {
	job, err := s.runJob(ctx, s.Cases)
	if err != nil {
		return err
	}
	first, err := s.do(ctx, job)
	if err != nil {
		return err
	}
	second, err := s.do(ctx, job)
	if err != nil {
		return err
	}
	if !maps.Equal(digests(first), digests(second)) {
		return fmt.Errorf("two processes computed %v and %v from the same bytes", digests(first), digests(second))
	}
	return nil
}

func batch(ctx context.Context, s *session) error {
	each := filepath.Join(s.dir, "batches.safetensors")
	if err := reshaped(s.Cases, each, func(shape []int64) []int64 { return slices.Insert(slices.Clone(shape), 1, 1) }); err != nil {
		return err
	}
	want, err := s.outputs(ctx, s.Cases)
	if err != nil {
		return err
	}
	got, err := s.outputs(ctx, each)
	if err != nil {
		return err
	}
	for name, w := range want {
		if g := got[name]; !bytes.Equal(g.Data, w.Data) {
			return fmt.Errorf("output %s %v of cases with a batch dimension of their own differs from %v of the same cases without", name, g.Shape, w.Shape)
		}
	}
	return nil
}

// reshaped writes the cases of a shard in other shapes.
func reshaped(from, to string, shape func([]int64) []int64) error {
	tensors, err := tensorfile.ReadFile(from, tensorfile.Limits{})
	if err != nil {
		return err
	}
	for name, v := range tensors {
		v.Shape = shape(v.Shape)
		tensors[name] = v
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(tensorfile.Write(f, tensors, nil), f.Close())
}

// refuses checks that a job is refused as CodeInvalid, and leaves nothing.
func refuses(jobOf func(context.Context, *session) (toolchain.Job, error)) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		job, err := jobOf(ctx, s)
		if err != nil {
			return err
		}
		driver, err := s.New(ctx)
		if err != nil {
			return err
		}
		out := s.fresh()
		_, err = driver.Do(ctx, job, out)
		switch {
		case err == nil:
			return errors.New("it does the job: want an error")
		case s.CommandLine && job.Verb == toolchain.VerbCompile:
		case job.Verb == toolchain.VerbRun && registry.HasCode(err, registry.CodeWrongNode): // an engine for no machine
		case !registry.HasCode(err, registry.CodeInvalid):
			return fmt.Errorf("want the error bad_input, unsupported_format or unsupported_op, and it fails otherwise: %w", err)
		}
		return left(out)
	}
}

// left is the error of a job that left files.
func left(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("a job that ended with an error left %s", entries[0].Name())
	}
	return err
}

func (s *session) garbage() (string, error) {
	path := filepath.Join(s.dir, "garbage")
	return path, os.WriteFile(path, []byte("\xff\xfe this is no model in any format at all"), 0o600)
}

func withoutModel(_ context.Context, s *session) (toolchain.Job, error) {
	return toolchain.Job{Verb: toolchain.VerbCompile, Options: s.Options}, nil
}

func garbageModel(_ context.Context, s *session) (toolchain.Job, error) {
	path, err := s.garbage()
	if err != nil {
		return toolchain.Job{}, err
	}
	return s.compileJob(path)
}

func unknownOption(_ context.Context, s *session) (toolchain.Job, error) {
	job, err := s.compileJob(s.Model)
	job.Options = map[string]any{"no_such_option": true}
	maps.Copy(job.Options, s.Options)
	return job, err
}

func unknownVerb(_ context.Context, s *session) (toolchain.Job, error) {
	job, err := s.compileJob(s.Model)
	job.Verb, job.Options = toolchain.VerbImport, nil
	return job, err
}

func withoutCases(ctx context.Context, s *session) (toolchain.Job, error) {
	job, err := s.runJob(ctx, s.Cases)
	job.Inputs = slices.DeleteFunc(job.Inputs, func(in toolchain.Input) bool { return in.Role == toolchain.RoleCases })
	return job, err
}

func garbageEngine(ctx context.Context, s *session) (toolchain.Job, error) {
	job, err := s.runJob(ctx, s.Cases)
	if err != nil {
		return job, err
	}
	path, err := s.garbage()
	if err != nil {
		return job, err
	}
	entry := slices.IndexFunc(job.Inputs, func(in toolchain.Input) bool { return in.Name == "engine/"+s.Profile.Entry })
	job.Inputs[entry], err = toolchain.FileInput(toolchain.RoleModel, job.Inputs[entry].Name, path)
	return job, err
}

func unknownLoadOption(ctx context.Context, s *session) (toolchain.Job, error) {
	job, err := s.runJob(ctx, s.Cases)
	if err == nil {
		job.Run.Engines[0].Load = map[string]string{"no_such_option": "1"}
	}
	return job, err
}

// stopAfter is soon enough that no compilation is done.
const stopAfter = 50 * time.Millisecond

func stop(ctx context.Context, s *session) error {
	job, err := s.compileJob(s.Model)
	if err != nil {
		return err
	}
	driver, err := s.New(ctx)
	if err != nil {
		return err
	}
	out := s.fresh()
	bounded, cancel := context.WithTimeout(ctx, stopAfter)
	defer cancel()
	_, err = driver.Do(bounded, job, out)
	if err == nil {
		return nil // it was faster
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("a job that was stopped ended with another error: %w", err)
	}
	return left(out)
}
