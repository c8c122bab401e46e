package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/registry"
)

func (a *app) buildCommand() *cobra.Command {
	var file string
	var cache cacheFlags
	var options pipeline.BuildOptions
	c := &cobra.Command{
		Use:   "build",
		Short: "Make the engines of a spec and put them into the first environment",
		Long: `Plans the spec, makes what the cache lacks, stores and signs the release, and moves
the first environment's head to it. Building twice gives the same digest and adds nothing.

stdout: the reference of the release.`,
		Example: "  REF=$(mlpromote build)",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.loadSpec(file)
			if err != nil {
				return err
			}
			if err := pipeline.Gate(s); err != nil {
				return err
			}
			cache.none = cache.none || options.CheckReproducible
			m, address, err := a.openMemory(s, cache)
			if err != nil {
				return err
			}
			if err := a.create(); err != nil {
				return err
			}
			return a.with(c.Context(), func(i *instance) error {
				if err := i.share(m, address, s.Model); err != nil {
					return err
				}
				return a.build(c.Context(), i, s, m, options)
			})
		},
	}
	specFlag(c, &file)
	cache.add(c)
	c.Flags().BoolVar(&options.CheckReproducible, "check-reproducible", false, "do every step twice, without the cache, and record in the provenance whether bytes or outputs are the same")
	return c
}

func (a *app) build(ctx context.Context, i *instance, s *spec.Spec, m *memory, options pipeline.BuildOptions) error {
	result, err := a.pipeline(i, m.steps, replacementsOf(s)).Build(ctx, s, options)
	if err := errors.Join(err, m.close(ctx, a, result.Steps > result.Cached)); err != nil {
		return err
	}
	if result.Already && i.environments.First().External() {
		// A publication that broke off before its tags were written is finished.
		if _, err := i.Publish(ctx, registry.Publication{Model: result.Release.Model, Release: result.Release.Digest}); err != nil {
			return err
		}
	}
	result.Reference.Host = i.hostOf(result.Reference.Environment)
	if err := rememberBuild(result.Reference); err != nil {
		return err
	}
	if result.Already {
		a.ui.note("nothing to do: %s has the release of this plan", result.Reference.Environment)
		return a.built(result)
	}
	a.ui.note("%d engines, %d of %d steps from the cache, %d signatures added, %s",
		len(result.Release.Engines), result.Cached, result.Steps, result.Attached, seconds(result.Elapsed))
	return a.built(result)
}

func (a *app) built(result pipeline.BuildResult) error {
	return a.ui.result(result.Reference.String(), struct {
		Reference string `json:"reference"`
		pipeline.BuildResult
	}{result.Reference.String(), result})
}

func (a *app) planCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "plan",
		Short: "Say what build would do, and what presets stand for",
		Args:  exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.loadSpec(file)
			if err != nil {
				return err
			}
			m := &memory{}
			if err := a.openLocalSteps(m); err != nil {
				return err
			}
			p := &pipeline.Pipeline{Toolchain: a.toolchain(false, m.steps, replacementsOf(s)), ImporterOf: drivers.Importer, Node: a.describe, Tool: a.tool(), Progress: a.ui.progress}
			plan, err := p.Plan(c.Context(), s)
			if err != nil {
				return err
			}
			return a.ui.result(planText(plan), plan)
		},
	}
	specFlag(c, &file)
	return c
}

func specFlag(c *cobra.Command, file *string) {
	c.Flags().StringVarP(file, "file", "f", "mlpromote.yaml", "spec to read")
}

func planText(p pipeline.Plan) string {
	rows := [][]string{{"ENGINE", "PRECISION", "TOOLCHAIN", "QUANTIZE", "COMPILE"}}
	for _, e := range p.Engines {
		rows = append(rows, []string{e.Target.Name + "/" + e.Variant, e.Precision, e.Toolchain.Name + " " + e.Toolchain.Version, quantizeText(e), options(e.Compile)})
	}
	source := ""
	if p.Quantized != "" {
		source = "source: already quantized (" + p.Quantized + "), passes through as it is\n"
	}
	return fmt.Sprintf("%s %s, plan %s\n%scases: %d %s\n\n%s\n%s", p.Model, p.Version, p.Digest, source, p.Cases.Count, p.Cases.Origin, table(rows), limitsText(p.Limits))
}

// quantizeText is what quantizes an engine and how.
func quantizeText(e pipeline.PlannedEngine) string {
	if e.Quantizer == nil || e.Quantizer.Name == spec.ToolONNXRuntime {
		return options(e.Quantize)
	}
	return e.Quantizer.Name + " " + e.Quantizer.Version + ": " + options(e.Quantize)
}

// options writes options as name=value, in order; none as "-". Lists and maps are JSON, so
// that it is seen where a name in them ends.
func options(o map[string]any) string {
	if len(o) == 0 {
		return "-"
	}
	text := ""
	for _, name := range sortedNames(o) {
		value := fmt.Sprint(o[name])
		if kind := reflect.ValueOf(o[name]).Kind(); kind == reflect.Map || kind == reflect.Slice {
			if written, err := json.Marshal(o[name]); err == nil {
				value = string(written)
			}
		}
		text += " " + name + "=" + value
	}
	return text[1:]
}
