package toolchain_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// fullJob and fullIdentity have every field set.
func fullJob() toolchain.Job {
	return toolchain.Job{
		Verb: toolchain.VerbRun,
		Inputs: []toolchain.Input{
			{Role: "model", Name: "m.onnx", Path: "/a", Digest: digest.FromString("m"), Size: 1},
			{Role: "operators", Name: "o.so", Path: "/o", Digest: digest.FromString("o"), Size: 3},
			{Role: "cases", Name: "c.safetensors", Path: "/b", Digest: digest.FromString("c"), Size: 2},
		},
		Options: map[string]any{"observer": "minmax", "seed": int64(1) << 60, "nested": map[string]any{"x": []any{1, "a"}}},
		Machine: "linux/amd64/v3/intel", Accelerators: []string{"nvidia"},
		Run: &toolchain.RunOptions{
			Engines: []toolchain.RunEngine{{ID: "m", Path: "m.onnx", ServerLoad: &toolchain.ServerLoad{Clients: 4, Share: 0.5}, Providers: []artifact.Provider{{Name: "A"}, {Name: "B",
				Options: map[string]string{"o": "1"}}}, Operators: []string{"o.so"}, Load: map[string]string{"l": "1"}}}, SelectOutputs: []string{"logits"},
			Rounds: 1, Warmup: 1, Order: toolchain.OrderSequential, Threads: 1, Level: "basic", Env: map[string]string{"OMP_DYNAMIC": "1"},
		},
	}
}

func fullIdentity() toolchain.Identity {
	return toolchain.Identity{
		Name: "tool", Version: "1", Lock: digest.FromString("lock"), Code: digest.FromString("code"),
		Library: "/lib.so", LibraryDigest: digest.FromString("lib"), Versions: map[string]string{"numpy": "2"},
	}
}

// Every field that can change a result changes the key, and no other does.
func TestKeyChangesWithEveryField(t *testing.T) {
	t.Parallel()
	other := digest.FromString("other")
	changes := map[string]func(*toolchain.Job, *toolchain.Identity){
		"nothing":       func(*toolchain.Job, *toolchain.Identity) {},
		"input name":    func(j *toolchain.Job, _ *toolchain.Identity) { j.Inputs[2].Name = "d.safetensors" },
		"input role":    func(j *toolchain.Job, _ *toolchain.Identity) { j.Inputs[2].Role = "calibration" },
		"input digest":  func(j *toolchain.Job, _ *toolchain.Identity) { j.Inputs[2].Digest = other },
		"fewer inputs":  func(j *toolchain.Job, _ *toolchain.Identity) { j.Inputs = j.Inputs[:2] },
		"option value":  func(j *toolchain.Job, _ *toolchain.Identity) { j.Options["observer"] = "entropy" },
		"option type":   func(j *toolchain.Job, _ *toolchain.Identity) { j.Options["observer"] = []string{"minmax"} },
		"large integer": func(j *toolchain.Job, _ *toolchain.Identity) { j.Options["seed"] = int64(1)<<60 + 1 },
		"nested option": func(j *toolchain.Job, _ *toolchain.Identity) {
			j.Options["nested"].(map[string]any)["x"].([]any)[1] = "b"
		},
		"another option":         func(j *toolchain.Job, _ *toolchain.Identity) { j.Options["more"] = nil },
		"machine":                func(j *toolchain.Job, _ *toolchain.Identity) { j.Machine = "" },
		"engine id":              func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Engines[0].ID = "n" },
		"other provider options": func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Engines[0].Providers[1].Options["o"] = "2" },
		"other providers":        func(j *toolchain.Job, _ *toolchain.Identity) { slices.Reverse(j.Run.Engines[0].Providers) },
		"no operators":           func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Engines[0].Operators = nil },
		"a fixed run":            func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Engines[0].Load = nil },
		"a plain load":           func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Engines[0].Load = map[string]string{} },
		"environment":            func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Env["OMP_DYNAMIC"] = "0" },
		"shares":                 func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Shares = true },
		"another engine": func(j *toolchain.Job, _ *toolchain.Identity) {
			j.Run.Engines = append(j.Run.Engines, toolchain.RunEngine{ID: "n", Path: "m.onnx"})
		},
		"profile":         func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Profile = 3 },
		"outputs":         func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.SelectOutputs = nil },
		"rounds":          func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Rounds = 2 },
		"warmup":          func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Warmup = 2 },
		"order":           func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Order = toolchain.OrderInterleaved },
		"threads":         func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Threads = 2 },
		"level":           func(j *toolchain.Job, _ *toolchain.Identity) { j.Run.Level = "extended" },
		"verb":            func(j *toolchain.Job, _ *toolchain.Identity) { j.Verb, j.Run = toolchain.VerbCompile, nil },
		"another verb":    func(j *toolchain.Job, _ *toolchain.Identity) { j.Verb, j.Run = toolchain.VerbQuantize, nil },
		"tool":            func(_ *toolchain.Job, i *toolchain.Identity) { i.Name = "other" },
		"version":         func(_ *toolchain.Job, i *toolchain.Identity) { i.Version = "2" },
		"lock":            func(_ *toolchain.Job, i *toolchain.Identity) { i.Lock = other },
		"image":           func(_ *toolchain.Job, i *toolchain.Identity) { i.Image = other },
		"code":            func(_ *toolchain.Job, i *toolchain.Identity) { i.Code = other },
		"library":         func(_ *toolchain.Job, i *toolchain.Identity) { i.LibraryDigest = other },
		"package version": func(_ *toolchain.Job, i *toolchain.Identity) { i.Versions["numpy"] = "3" },
	}
	seen := make(map[registry.Digest]string)
	for name, change := range changes {
		job, tool := fullJob(), fullIdentity()
		change(&job, &tool)
		key, err := toolchain.Key(job, tool)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if twin, ok := seen[key]; ok {
			t.Errorf("%q and %q have one key", name, twin)
		}
		seen[key] = name
	}
	for name, change := range map[string]func(*toolchain.Job, *toolchain.Identity){
		"input path":      func(j *toolchain.Job, _ *toolchain.Identity) { j.Inputs[0].Path = "/elsewhere" },
		"order of inputs": func(j *toolchain.Job, _ *toolchain.Identity) { slices.Reverse(j.Inputs) },
		"library path":    func(_ *toolchain.Job, i *toolchain.Identity) { i.Library = "/elsewhere.so" },
	} {
		job, tool := fullJob(), fullIdentity()
		change(&job, &tool)
		if key, err := toolchain.Key(job, tool); err != nil || seen[key] != "nothing" {
			t.Errorf("%s changes the key (%v)", name, err)
		}
	}
}

// free are the fields that change nothing: where things are, not what they are. The size
// of an input follows from its digest.
var free = []string{"Job.Inputs.Path", "Job.Inputs.Size", "Identity.Library",
	"Job.Budget.Time", "Job.Budget.Cores", "Job.Budget.MemoryBytes", "Job.Budget.GPUs"}

// Every field of what a key is made of, however deep, and of one that is added tomorrow,
// changes the key, unless it is free.
func TestKeyKnowsEveryField(t *testing.T) {
	t.Parallel()
	type both struct {
		Job      toolchain.Job
		Identity toolchain.Identity
	}
	full := func() reflect.Value { return reflect.ValueOf(&both{fullJob(), fullIdentity()}).Elem() }
	keyOf := func(v reflect.Value) registry.Digest {
		b := v.Interface().(both)
		key, err := toolchain.Key(b.Job, b.Identity)
		if err != nil {
			return "" // a job that cannot be has no key, which is another one
		}
		return key
	}
	want := keyOf(full())
	var paths [][]int
	leaves(t, full(), nil, "", func(path []int, name string) {
		paths = append(paths, path)
		changed := full()
		change(t, at(changed, path), name)
		if got := keyOf(changed); (got == want) != slices.Contains(free, name) {
			t.Errorf("%s: the key is the same: %t", name, got == want)
		}
	})
	if len(paths) < 20 {
		t.Errorf("%d fields found: the test looks at too few", len(paths))
	}
}

// leaves finds what has no fields or elements of its own. The full values have all set.
func leaves(t *testing.T, v reflect.Value, path []int, name string, leaf func(path []int, name string)) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			leaves(t, v.Field(i), append(slices.Clone(path), i), strings.TrimPrefix(name+"."+field.Name, "."), leaf)
		}
	case reflect.Pointer:
		leaves(t, v.Elem(), append(slices.Clone(path), 0), name, leaf)
	case reflect.Slice:
		if v.Len() == 0 {
			t.Errorf("%s: the full value leaves it empty", name)
			return
		}
		last := v.Len() - 1 // of the inputs the cases, whose role and name are free to be others
		leaves(t, v.Index(last), append(slices.Clone(path), last), name, leaf)
	default:
		leaf(path, name)
	}
}

// at follows a path to a leaf.
func at(v reflect.Value, path []int) reflect.Value {
	for _, i := range path {
		switch v.Kind() {
		case reflect.Struct:
			v = v.Field(i)
		case reflect.Pointer:
			v = v.Elem()
		default:
			v = v.Index(i)
		}
	}
	return v
}

// change makes a leaf something else.
func change(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	switch v.Interface().(type) {
	case registry.Digest:
		v.SetString(digest.FromString("other").String())
		return
	case toolchain.Order:
		v.SetString(string(toolchain.OrderInterleaved))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() / 2)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Map:
		if strings.HasSuffix(name, "Run.Env") { // takes variables of runtimes alone
			v.SetMapIndex(reflect.ValueOf("OMP_MORE"), reflect.ValueOf("1"))
			return
		}
		v.SetMapIndex(reflect.ValueOf("more"), reflect.New(v.Type().Elem()).Elem())
	default:
		t.Errorf("%s is a %s, which the test cannot change", name, v.Type())
	}
}

func TestJobValidate(t *testing.T) {
	t.Parallel()
	if err := fullJob().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*toolchain.Job){
		"verb":                     func(j *toolchain.Job) { j.Verb = "deploy" },
		"role":                     func(j *toolchain.Job) { j.Inputs[0].Role = "../x" },
		"absolute name":            func(j *toolchain.Job) { j.Inputs[0].Name = "/etc/passwd" },
		"name that leaves":         func(j *toolchain.Job) { j.Inputs[0].Name = "a/../../b" },
		"name no UTF-8":            func(j *toolchain.Job) { j.Inputs[0].Name = "a\xff" },
		"no path":                  func(j *toolchain.Job) { j.Inputs[0].Path = "" },
		"no digest":                func(j *toolchain.Job) { j.Inputs[0].Digest = "" },
		"two of a name":            func(j *toolchain.Job) { j.Inputs = append(j.Inputs, j.Inputs[0]) },
		"no run options":           func(j *toolchain.Job) { j.Run = nil },
		"run of a compile":         func(j *toolchain.Job) { j.Verb = toolchain.VerbCompile },
		"no engines":               func(j *toolchain.Job) { j.Run.Engines = nil },
		"engine that is no input":  func(j *toolchain.Job) { j.Run.Engines[0].Path = "other.onnx" },
		"engine id":                func(j *toolchain.Job) { j.Run.Engines[0].ID = "../up" },
		"library that is no input": func(j *toolchain.Job) { j.Run.Engines[0].Operators = []string{"p.so"} },
		"engine twice":             func(j *toolchain.Job) { j.Run.Engines = append(j.Run.Engines, j.Run.Engines[0]) },
		"rounds":                   func(j *toolchain.Job) { j.Run.Rounds = -1 },
		"threads":                  func(j *toolchain.Job) { j.Run.Threads = -1 },
		"variable that loads code": func(j *toolchain.Job) { j.Run.Env["LD_PRELOAD"] = "x.so" },
		"order":                    func(j *toolchain.Job) { j.Run.Order = "random" },
	} {
		job := fullJob()
		change(&job)
		if err := job.Validate(); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
	if err := (toolchain.Job{}).Validate(); err == nil {
		t.Error("the zero job is valid")
	}
}
