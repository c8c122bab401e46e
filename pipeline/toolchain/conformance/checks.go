package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

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
	if s.Runtime != nil {
		return confirms(probe.Tool, map[string]string{s.Runtime.Name: s.Runtime.Version})
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
		Verb: toolchain.VerbRun, Inputs: []toolchain.Input{shard}, Accelerators: s.Accelerators,
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
