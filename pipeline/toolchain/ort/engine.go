//go:build cgo

package ort

import (
	"slices"
	"strings"
	"time"

	rt "github.com/yalue/onnxruntime_go"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// engine is a loaded model.
type engine struct {
	id, path string
	settings settings
	session  *rt.DynamicAdvancedSession
	inputs   []value
	outputs  []value // the selected ones
	load     time.Duration
	bound    *bound

	providers []evidence.ProviderShare // as the first case ran, if that was requested
	times     *toolchain.RunProfile    // where the time goes, if that was requested
}

// open loads the engine once to learn its inputs and outputs. Call start to run it.
func open(e toolchain.RunEngine, o toolchain.RunOptions) (*engine, error) {
	set := settings{load: e.Load, providers: e.Providers, operators: e.Operators}
	if e.Load == nil {
		set.load = fixed(o.Level, o.Threads)
	}
	in, out, err := set.values(e.Path)
	if err != nil {
		return nil, loadError(e.ID, e.Path, err)
	}
	opened := &engine{id: e.ID, path: e.Path, settings: set}
	if opened.inputs, err = values("input", in); err != nil {
		return nil, err
	}
	if out, err = selected(out, o.SelectOutputs); err != nil {
		return nil, err
	}
	if opened.outputs, err = values("output", out); err != nil {
		return nil, err
	}
	if len(opened.inputs) == 0 || len(opened.outputs) == 0 {
		return nil, driverproc.Errorf(driverproc.UnsupportedFormat, "engine %s has no inputs or no outputs", e.ID)
	}
	return opened, nil
}

// values asks the library for the inputs and outputs of an engine. The binding wants their names
// before it loads an engine to run it, so this is a load of its own: one without what takes
// time, such as optimization, or, if the engine does not load like that, one as it will run.
func (s settings) values(path string) (in, out []rt.InputOutputInfo, err error) {
	quick := settings{load: map[string]string{"graph_optimization_level": "disable_all", "session.disable_prepacking": "1"}, operators: s.operators}
	for _, set := range []settings{quick, s} {
		options, failed := set.open()
		if failed != nil {
			return nil, nil, failed
		}
		in, out, err = rt.GetInputOutputInfoWithOptions(path, options)
		if err = release(options, err); err == nil {
			return in, out, nil
		}
	}
	return nil, nil, err
}

// start loads the engine to run it, and measures how long that takes.
func (e *engine) start() error {
	options, err := e.settings.open()
	if err != nil {
		return err
	}
	begin := time.Now()
	e.session, err = rt.NewDynamicAdvancedSession(e.path, names(e.inputs), names(e.outputs), options)
	e.load = time.Since(begin)
	if err = release(options, err); err != nil {
		return loadError(e.id, e.path, err)
	}
	return nil
}

func (e *engine) close() error {
	e.bound.destroy()
	return e.session.Destroy()
}

// slots returns the inputs as shards of cases are checked against them.
func (e *engine) slots() []caserun.Slot {
	var all []caserun.Slot
	for _, input := range e.inputs {
		all = append(all, input.slot())
	}
	return all
}

func names(values []value) []string {
	var all []string
	for _, v := range values {
		all = append(all, v.name)
	}
	return all
}

// selected returns the outputs with these names, in the model's order, or all outputs if names
// is empty.
func selected(outputs []rt.InputOutputInfo, only []string) ([]rt.InputOutputInfo, error) {
	if len(only) == 0 {
		return outputs, nil
	}
	var found []rt.InputOutputInfo
	var have []string
	for _, o := range outputs {
		have = append(have, o.Name)
		if slices.Contains(only, o.Name) {
			found = append(found, o)
		}
	}
	for _, name := range only {
		if !slices.Contains(have, name) {
			return nil, driverproc.Errorf(driverproc.BadInput, "no output %q: want some of %s", name, strings.Join(have, ", "))
		}
	}
	return found, nil
}
