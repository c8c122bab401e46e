package artifact_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

const loadDocument = `{"env":{"OMP_NUM_THREADS":"1"},"options":{"graph_optimization_level":"disable_all","session.set_denormal_as_zero":"1"},"required":true,"runtime":"onnxruntime","v":1}`

func TestLoadProfileDocument(t *testing.T) {
	t.Parallel()
	p, err := artifact.NewLoadProfile("onnxruntime", map[string]string{"graph_optimization_level": "disable_all", "session.set_denormal_as_zero": "1"},
		map[string]string{"OMP_NUM_THREADS": "1"}, true)
	if err != nil {
		t.Fatal(err)
	}
	document, err := p.Document()
	if err != nil || string(document) != loadDocument {
		t.Errorf("document %s (%v), want %s", document, err, loadDocument)
	}
	read, err := artifact.ParseLoadProfile(document)
	if err != nil || !maps.Equal(read.Options, p.Options) || !maps.Equal(read.Env, p.Env) || !read.Required {
		t.Errorf("read %+v (%v), want %+v", read, err, p)
	}
	if got, want := p.String(), "graph_optimization_level=disable_all, session.set_denormal_as_zero=1, OMP_NUM_THREADS=1 in the environment"; got != want {
		t.Errorf("for people %q, want %q", got, want)
	}
	if zero, err := artifact.NewLoadProfile("onnxruntime", nil, nil, false); err != nil || !zero.IsZero() || zero.String() != artifact.LoadDefault {
		t.Errorf("a profile of nothing is %v (%v), want the zero profile, called %q", zero, err, artifact.LoadDefault)
	}
	if p.IsZero() {
		t.Error("a profile with options is zero")
	}
}

// A profile that says anything is not that of the runtime.
func TestLoadProfileIsZero(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile artifact.LoadProfile
		zero    bool
	}{
		"nothing":       {artifact.LoadProfile{}, true},
		"empty options": {artifact.LoadProfile{Options: map[string]string{}, Env: map[string]string{}}, true},
		"a version":     {artifact.LoadProfile{V: 1}, false},
		"a runtime":     {artifact.LoadProfile{Runtime: "onnxruntime"}, false},
		"an option":     {artifact.LoadProfile{Options: map[string]string{"x": "1"}}, false},
		"a variable":    {artifact.LoadProfile{Env: map[string]string{"OMP_X": "1"}}, false},
		"required":      {artifact.LoadProfile{Required: true}, false},
	} {
		if got := c.profile.IsZero(); got != c.zero {
			t.Errorf("%s: zero is %t, want %t", name, got, c.zero)
		}
	}
}

// Each of these, in place of a profile, is refused, and the message says why.
func TestLoadProfileRefuses(t *testing.T) {
	t.Parallel()
	profile := func(options, env string) string {
		return `{"env":{` + env + `},"options":{` + options + `},"runtime":"onnxruntime","v":1}`
	}
	for name, c := range map[string]struct{ document, want string }{
		"nothing":                  {``, "EOF"},
		"null":                     {`null`, "version 0"},
		"another version":          {`{"env":{},"options":{"x":"1"},"runtime":"onnxruntime","v":2}`, "version 2: want 1"},
		"an unknown field":         {`{"env":{},"library":"x","options":{},"runtime":"onnxruntime","v":1}`, "library"},
		"no runtime":               {`{"env":{},"options":{"x":"1"},"runtime":"","v":1}`, "want a name such as onnxruntime"},
		"a runtime that is a path": {`{"env":{},"options":{"x":"1"},"runtime":"../x","v":1}`, "want a name such as onnxruntime"},
		"no env":                   {`{"options":{"graph_optimization_level":"all"},"runtime":"onnxruntime","v":1}`, "env is missing"},
		"nothing set":              {profile(``, ``), "leave the profile out"},
		"an unknown option":        {profile(`"ep.context_file_path":"x"`, ``), "has no option ep.context_file_path: want some of enable_cpu_mem_arena, "},
		"a value out of range":     {profile(`"graph_optimization_level":"most"`, ``), "want disable_all, basic, extended or all"},
		"a number that is none":    {profile(`"intra_op_num_threads":"-1"`, ``), "want a number from 0 to 9999"},
		"a value that is a path":   {profile(``, `"OMP_PLACES":"/etc/passwd"`), "no file path"},
		"a value with a dot first": {profile(``, `"OMP_PLACES":"..x"`), "no file path"},
		"an empty value":           {profile(``, `"OMP_PLACES":""`), "want 1 to 128"},
		"a long value":             {profile(``, `"OMP_PLACES":"`+strings.Repeat("1", 129)+`"`), "want 1 to 128"},
		"a value with a newline":   {profile(``, `"OMP_PLACES":"1\n2"`), "want 1 to 128"},
		"a preloaded library":      {profile(``, `"LD_PRELOAD":"x.so"`), "want one of a runtime"},
		"the search path":          {profile(``, `"PATH":"x"`), "want one of a runtime"},
		"code of Python":           {profile(``, `"PYTHONSTARTUP":"x"`), "want one of a runtime"},
		"a proxy":                  {profile(``, `"HTTPS_PROXY":"x"`), "want one of a runtime"},
		"a library of CUDA's":      {profile(``, `"CUDA_INJECTION64_PATH":"x.so"`), "can name a file or code"},
		"a plugin of OpenVINO's":   {profile(``, `"OV_FRONTEND_PATH":"x"`), "can name a file or code"},
		"a library of OMP tools":   {profile(``, `"OMP_TOOL_LIBRARIES":"x"`), "can name a file or code"},
		"a lower-case variable":    {profile(``, `"omp_num_threads":"1"`), "upper-case"},
		"not canonical":            {` ` + loadDocument, "canonically"},
		"other order":              {`{"v":1,"runtime":"onnxruntime","options":{"enable_mem_pattern":"0"},"env":{}}`, "canonically"},
		"a key twice":              {`{"env":{},"options":{"enable_mem_pattern":"0","enable_mem_pattern":"1"},"runtime":"onnxruntime","v":1}`, "canonically"},
		"something behind":         {loadDocument + `{}`, "something follows"},
		"too long":                 {profile(`"session.intra_op_thread_affinities":"`+strings.Repeat("1", 16<<10)+`"`, ``), "want at most 16384"},
		"too many variables":       {profile(``, manyVariables()), "want at most 32"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := artifact.ParseLoadProfile([]byte(c.document))
			if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("read as %+v, error %v: want CodeInvalid with %q", p, err, c.want)
			}
		})
	}
}

func manyVariables() string {
	var all []string
	for i := range 33 {
		all = append(all, `"OMP_X`+strings.Repeat("A", i)+`":"1"`)
	}
	return strings.Join(all, ",")
}

// Options of a runtime that this program does not know are not judged, but for their form.
func TestLoadProfileOfAnotherRuntime(t *testing.T) {
	t.Parallel()
	if p, err := artifact.NewLoadProfile("acme", map[string]string{"fast_math": "1"}, nil, false); err != nil {
		t.Errorf("%v: %v, want no error", p, err)
	}
	if _, err := artifact.NewLoadProfile("acme", map[string]string{"fast math": "1"}, nil, false); err == nil {
		t.Error("an option with a space is valid")
	}
	if _, err := artifact.NewLoadProfile("acme", nil, nil, true); err == nil {
		t.Error("a profile that is required and sets nothing is valid")
	}
}

// The settings of a report say how the engine was loaded.
func TestSettingsOf(t *testing.T) {
	t.Parallel()
	if got := evidence.SettingsOf(nil); got.Load != artifact.LoadDefault || got.Threads != 0 || got.Level != "" || got.Profile != nil {
		t.Errorf("settings of a plain load %+v, want %q without level and threads", got, artifact.LoadDefault)
	}
	p, err := artifact.NewLoadProfile("onnxruntime",
		map[string]string{"graph_optimization_level": "basic", "intra_op_num_threads": "2", "session.set_denormal_as_zero": "1"}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := evidence.SettingsOf(&p); got.Load != artifact.LoadByProfile ||
		got.Threads != 2 || got.Level != "basic" || got.Denormals != "flush" || got.Profile != &p {
		t.Errorf("settings of a profile %+v, want level basic, 2 threads, denormals flushed", got)
	}
}

// Whatever is read is valid, is written as it was read, and can neither load code nor name a file.
func FuzzParseLoadProfile(f *testing.F) {
	f.Add([]byte(loadDocument))
	f.Add([]byte(`{"env":{"LD_PRELOAD":"x"},"options":{},"runtime":"openvino","v":1}`))
	f.Add([]byte(`{"env":{},"options":{"NUM_STREAMS":"AUTO"},"runtime":"openvino","v":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := artifact.ParseLoadProfile(data)
		if err != nil {
			if !registry.HasCode(err, registry.CodeInvalid) {
				t.Errorf("%q: %v, want CodeInvalid", data, err)
			}
			return
		}
		again, err := p.Document()
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%q is written as %q (%v)", data, again, err)
		}
		for name, value := range p.Env {
			if strings.HasPrefix(name, "LD_") || strings.Contains(name, "PATH") || strings.ContainsAny(value, "/\\\n") {
				t.Errorf("%q lets %s=%q pass", data, name, value)
			}
		}
		for name, value := range p.Options {
			if strings.ContainsAny(value, "/\\\n") {
				t.Errorf("%q lets option %s=%q pass", data, name, value)
			}
		}
	})
}
