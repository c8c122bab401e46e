package pipeline

import (
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
)

// tool is an open toolchain.
type tool struct {
	Toolchain
	identity toolchain.Identity
}

// tools are the toolchains that a build or a verification works with, by name.
type tools map[string]tool

// open adds a toolchain, installing it where the pipeline was told to.
func (t tools) open(ctx context.Context, p *Pipeline, name string) error {
	if _, ok := t[name]; ok {
		return nil
	}
	opened, err := p.Toolchain(ctx, name)
	if err != nil {
		return err
	}
	identity, err := opened.Engines.Identity(ctx)
	if err != nil {
		return err
	}
	t[name] = tool{opened, identity}
	return nil
}

// names lists the tools, in order.
func (t tools) names() []string { return slices.Sorted(maps.Keys(t)) }

// runtimes is what the tools bring to the machine that has them.
func (t tools) runtimes() map[string]string {
	found := make(map[string]string, len(t))
	for name, tool := range t {
		if tool.Profile.Name != "" { // what only quantizes runs nothing
			found[name] = tool.identity.Version
		}
	}
	return found
}

// planning gives the tools as a plan sees them.
func (t tools) planning(ctx context.Context) (map[string]plan.Tool, error) {
	seen := make(map[string]plan.Tool, len(t))
	for name, tool := range t {
		known := plan.Tool{Profile: tool.Profile, Identity: tool.identity, Code: []registry.Digest{tool.identity.Code}}
		if tool.Quantizer != nil {
			quantizer, err := tool.Quantizer.Identity(ctx)
			if err != nil {
				return nil, err
			}
			if quantizer.Code != tool.identity.Code {
				known.Code = append(known.Code, quantizer.Code)
			}
		}
		seen[name] = known
	}
	return seen, nil
}

// loadable is an engine on disk: its files, and which of them the runtime loads.
type loadable struct {
	entry  string // name of an input
	inputs []toolchain.Input
	alone  bool // in a process of its own
	// operators are the names of the inputs that are libraries of operators.
	operators []string
}

// size is what its files take, in bytes.
func (l loadable) size() int64 { return sizeOfInputs(l.inputs) }

// loadable finds what the runtime of a toolchain loads in a part, after the format check for
// untrusted formats. Its inputs lie in a folder of the name of id.
func (m material) loadable(profile toolchain.Profile, id string) (loadable, error) {
	profile, err := m.entryOf(profile, id)
	if err != nil {
		return loadable{}, err
	}
	found := loadable{}
	for _, f := range m.files {
		if f.Kind == registry.FileAsset {
			continue
		}
		file := filepath.Join(m.dir, filepath.FromSlash(f.Path))
		if f.Kind == registry.FileCode {
			// Code by nature: the manifest says so, and who reads it has checked that.
			in := toolchain.Input{Role: toolchain.RoleOperators,
				Name: path.Join(id, f.Path), Path: file, Digest: f.Digest, Size: f.Size}
			found.inputs, found.operators = append(found.inputs, in), append(found.operators, in.Name)
			continue
		}
		if err := checkFormat(file, f.Path, profile); err != nil {
			return loadable{}, err
		}
		in := toolchain.Input{Role: toolchain.RoleModel,
			Name: path.Join(id, f.Path), Path: file, Digest: f.Digest, Size: f.Size}
		if f.Path == profile.Entry {
			found.entry, found.alone = in.Name, profile.Alone
		}
		found.inputs = append(found.inputs, in)
	}
	if found.entry == "" {
		return loadable{}, registry.Errorf(registry.CodeInvalid,
			"%s has no file %s, which %s loads", id, profile.Entry, profile.Name)
	}
	return found, nil
}

// entryOf gives the profile with the entry that a part has. Errors: CodeInvalid if it has several.
func (m material) entryOf(profile toolchain.Profile, id string) (toolchain.Profile, error) {
	found, entries := profile, []string(nil)
	for entry, of := range profile.Entries() {
		if slices.ContainsFunc(m.files, func(f registry.File) bool { return f.Kind == registry.FileEngine && f.Path == entry }) {
			found, entries = of, append(entries, entry)
		}
	}
	if slices.Sort(entries); len(entries) > 1 {
		return toolchain.Profile{}, registry.Errorf(registry.CodeInvalid, "%s has the files %s, of which %s loads one: which of them is not said",
			id, strings.Join(entries, " and "), profile.Name)
	}
	return found, nil
}

// loadableOutput finds it among files that a compiler just left.
func loadableOutput(profile toolchain.Profile, id string, files []toolchain.OutputFile) (loadable, error) {
	found := loadable{}
	for _, f := range files {
		in := toolchain.Input{Role: toolchain.RoleModel,
			Name: path.Join(id, f.Name), Path: f.Path, Digest: f.Digest, Size: f.Size}
		if found.inputs = append(found.inputs, in); f.Name == profile.Entry {
			found.entry = in.Name
		}
	}
	if found.entry == "" {
		return loadable{}, registry.Errorf(registry.CodeInternal, "%s left no %s", profile.Name, profile.Entry)
	}
	return found, nil
}

// checkFormat lets a file of an engine pass: the one that is loaded must be in the format of
// the toolchain, the others must not be of a kind that runs code when it is loaded. Native code
// passes in engines that say that they hold it.
func checkFormat(file, name string, profile toolchain.Profile) error {
	reading := profile.Reading
	if name == profile.Entry && reading.Kind != format.Unknown {
		return format.Check(file, reading.Kind, format.Limits{})
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := (format.Gate{NativeCode: profile.NativeCode, Beside: onDisk}).CheckFile(f); err != nil || name != profile.Entry || !reading.Unpacked {
		return err
	}
	_, err = format.OpenTie(file, reading.Tie) // the loader unpacks it by the names of its entries
	return err
}

// onDisk is the size of a file that a model names, beside it on disk.
func onDisk(file string) (int64, bool) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// runGroup is engines that run in one process, taking turns.
type runGroup struct {
	name    string // for folders
	tool    tool
	members []candidate
}

// runGroups groups the engines of a toolchain that can run in one process. Each
// toolchain has one, even if no engine is in it.
func (t tools) runGroups(candidates []candidate) []runGroup {
	var all []runGroup
	for _, name := range t.names() {
		together := runGroup{name: name, tool: t[name]}
		var alone []runGroup
		for _, c := range candidates {
			switch {
			case c.tool.identity.Name != name:
			case c.alone():
				alone = append(alone, runGroup{name + "-" + c.id, t[name], []candidate{c}})
			default:
				together.members = append(together.members, c)
			}
		}
		all = append(append(all, together), alone...)
	}
	return all
}

// alone reports whether the engine must run in a process of its own, because it or its load profile
// configures the process.
func (c candidate) alone() bool {
	load := c.engine.Load
	return c.model.alone || load != nil && (len(load.Env) > 0 || c.tool.Profile.LoadsProcess)
}

// size is what the files of the models take, in bytes. What several members have counts
// for each: that is how often it is loaded.
func (c runGroup) size() int64 {
	var n int64
	for _, m := range c.members {
		n += m.model.size()
	}
	return n
}

// apart has every member run twice, alone, in an order and then in reverse, so that what
// changes on the machine meanwhile meets all alike.
func (c runGroup) apart() []runGroup {
	var turns []runGroup
	for _, m := range c.members {
		turns = append(turns, runGroup{c.name, c.tool, []candidate{m}})
	}
	back := slices.Clone(turns)
	slices.Reverse(back)
	return append(turns, back...)
}

// engineRun is a run of engines of one toolchain in the making.
type engineRun struct {
	tool tool
	job  toolchain.Job
	held []string // how the driver was held, if it ran

	outcome toolchain.Outcome
}

// run begins a run of engines.
func (t tool) run(o toolchain.RunOptions) engineRun {
	return engineRun{tool: t, job: toolchain.Job{Verb: toolchain.VerbRun, Run: &o}}
}

// addCandidate puts an engine into the run, for the providers that it declares. It is loaded by
// its load profile, or else as the runtime does by itself.
func (r *engineRun) addCandidate(c candidate) {
	load := registry.LoadProfile{Options: map[string]string{}}
	if c.engine.Load != nil {
		load = *c.engine.Load
	}
	r.job.Run.Engines = append(r.job.Run.Engines, toolchain.RunEngine{ID: c.id, Path: c.model.entry,
		Operators: c.model.operators, Providers: c.engine.Providers, Load: load.Options})
	r.job.Inputs = append(r.job.Inputs, c.model.inputs...)
	if a := c.engine.Target.Accelerator; a != nil && !slices.Contains(r.job.Accelerators, a.Vendor) {
		r.job.Accelerators = append(r.job.Accelerators, a.Vendor)
	}
	if len(load.Env) > 0 {
		r.job.Run.Env = load.Env
	}
}

// do runs what was added, in the order of adding. A run of nothing does nothing.
func (r *engineRun) do(ctx context.Context, dir string) ([]toolchain.EngineResult, error) {
	if len(r.job.Run.Engines) == 0 {
		return nil, nil
	}
	outcome, err := r.tool.Timing.Do(ctx, r.job, dir)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: %w", r.tool.identity.Name, err)
	}
	if r.outcome = outcome; !outcome.Cached {
		r.held = []string{r.tool.identity.Name + ": " + outcome.Enforced.String()}
	}
	result, err := outcome.RunResult(*r.job.Run)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: %w", r.tool.identity.Name, err)
	}
	return result.Engines, nil
}

// fix loads all engines as the reference is loaded: on one thread, without a load profile.
func (r *engineRun) fix() {
	r.job.Run.Threads, r.job.Run.Level = runThreads, r.tool.Profile.Level
	for i := range r.job.Run.Engines {
		r.job.Run.Engines[i].Load = nil
	}
}
