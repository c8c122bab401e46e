package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

var (
	slotX = caserun.Slot{Name: "x", DType: tensor.Float32, Shape: []int64{-1}}
	slotY = caserun.Slot{Name: "y", DType: tensor.Float32, Shape: []int64{-1}}
	slotZ = caserun.Slot{Name: "z", DType: tensor.Float32, Shape: []int64{-1}}
)

// caseCount is how many cases a test has.
const caseCount = 5

// numbers are the values of all cases, times a factor. The first of each case is a whole number, its own.
func numbers(factor float32) (all []float32) {
	for c := range caseCount {
		all = append(all, factor*float32(c+1), factor*(float32(c)/7-1), factor*1e-3/float32(c+3))
	}
	return all
}

// asked is a request about the fake server with faults, in folders of the test.
func asked(t *testing.T, verb toolchain.Verb, protocol string, faults ...string) driverproc.Request {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Name: "fake", Model: "m", Protocol: protocol, Engine: "m/1", ReadySeconds: 60, Inputs: []caserun.Slot{slotX}, Outputs: []caserun.Slot{slotY, slotZ},
		Environment: map[string]string{"FAKE_LOCK": filepath.Join(dir, "lock")},
		Command:     append([]string{self, fakeName, "{folder}", "m/1/factor", "{http}", "{grpc}"}, faults...)}
	if slices.Contains(faults, "hangs") {
		c.ReadySeconds = 1
	}
	if protocol == ProtocolHTTP {
		c.HTTP = &Mapping{Ready: "/v2", Predict: "/v1/models/m:predict", Body: `{"inputs": {"x": "{x}"}}`, Outputs: map[string]string{"y": "/outputs/y", "z": "/outputs/z"}}
	}
	cases, err := tensor.New(numbers(1), caseCount, 3)
	if err != nil {
		t.Fatal(err)
	}
	var shard bytes.Buffer
	if err := tensorfile.Write(&shard, map[string]tensor.Tensor{"x": cases}, nil); err != nil {
		t.Fatal(err)
	}
	r := driverproc.Request{Protocol: driverproc.Protocol, Verb: verb, Options: map[string]any{OptionServer: c}, OutDir: filepath.Join(dir, "out"),
		Inputs: []driverproc.RequestInput{
			{Role: toolchain.RoleModel, Name: "engine-0/factor", Path: write("factor", []byte("2.5\n"))},
			{Role: RoleServer, Name: "old/factor", Path: write("old", []byte("2.4\n"))},
			{Role: toolchain.RoleCases, Name: "cases.safetensors", Path: write("cases.safetensors", shard.Bytes())},
		}}
	if verb == toolchain.VerbRun {
		r.Run = &driverproc.RunRequest{OutputsDir: filepath.Join(r.OutDir, "outputs"),
			RunOptions: toolchain.RunOptions{Engines: []toolchain.RunEngine{{ID: "engine-0", Path: r.Inputs[0].Path}}}}
	}
	return r
}

// outputs reads what a run left of an engine.
func outputs(t *testing.T, r driverproc.Request, id string) map[string]tensor.Tensor {
	t.Helper()
	found, err := tensorfile.ReadFile(filepath.Join(r.Run.OutputsDir, id, "cases.safetensors"), tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What each protocol sends and reads, bit for bit.
func TestProtocols(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		protocol string
		faults   []string // no fault for these protocols
	}{
		"REST with binary tensors": {ProtocolREST, nil}, "REST with JSON": {ProtocolREST, []string{"json"}},
		"gRPC": {ProtocolGRPC, nil}, "gRPC with typed contents": {ProtocolGRPC, []string{"typed"}},
		"TensorFlow Serving": {ProtocolTFServing, nil}, "a mapping": {ProtocolHTTP, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := asked(t, toolchain.VerbRun, c.protocol, c.faults...)
			result, err := Handle(t.Context(), r, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			ran, ok := result.(toolchain.RunResult)
			if !ok || ran.Cases != caseCount || len(ran.Engines) != 1 || len(ran.Engines[0].TimingsNS) != caseCount || ran.Engines[0].LoadNS <= 0 {
				t.Errorf("%+v", result)
			}
			found := outputs(t, r, "engine-0")
			for name, factor := range map[string]float32{"y": 2.5, "z": 1} {
				want, err := tensor.New(scaled(factor), caseCount, 3)
				if err != nil {
					t.Fatal(err)
				}
				if got := found[name]; !bytes.Equal(got.Data, want.Data) || !slices.Equal(got.Shape, want.Shape) {
					t.Errorf("%s: %v %v, want %v", name, got.Shape, got.Float64s(), want.Float64s())
				}
			}
		})
	}
}

// Without an interface, the server's own description is taken.
func TestLearned(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{ProtocolREST, ProtocolGRPC} {
		r := asked(t, toolchain.VerbRun, protocol)
		c, _ := r.Options[OptionServer].(Config)
		c.Inputs, c.Outputs = nil, nil
		r.Options = map[string]any{OptionServer: c}
		r.Run.SelectOutputs = []string{"y"}
		if _, err := Handle(t.Context(), r, t.Output()); err != nil {
			t.Fatal(err)
		}
		found := outputs(t, r, "engine-0")
		want, _ := tensor.New(scaled(2.5), caseCount, 3)
		if len(found) != 1 || !bytes.Equal(found["y"].Data, want.Data) {
			t.Errorf("%s: %v, want y %v", protocol, found, want.Float64s())
		}
	}
}

// scaled are the numbers as the fake server computes with them.
func scaled(factor float32) []float32 {
	all := numbers(1)
	for i := range all {
		all[i] *= factor
	}
	return all
}

// probed probes the fake server with faults.
func probed(t *testing.T, protocol string, faults ...string) (ProbeResult, error) {
	t.Helper()
	result, err := Handle(t.Context(), asked(t, toolchain.VerbProbe, protocol, faults...), t.Output())
	told, _ := result.(ProbeResult)
	return told, err
}

// What the server tells, and faults of it that a probe finds.
func TestProbe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		protocol  string
		faults    []string
		disagrees string // part of it
		blank     bool
		err       string
	}{
		"as it should be":       {ProtocolREST, nil, "", false, ""},
		"over gRPC":             {ProtocolGRPC, nil, "", false, ""},
		"a stale file":          {ProtocolREST, []string{"stale"}, "", true, ""},
		"a stale file, by gRPC": {ProtocolGRPC, []string{"stale"}, "", true, ""},
		"a stale file, and a server that starts once": {ProtocolREST, []string{"stale", "once"}, "", false, "so its silence on zeros shows nothing"},
		"another type of numbers":                     {ProtocolREST, []string{"dtype"}, `its input "x" is FP64 [-1]: the model has FP32 [-1]`, false, ""},
		"two versions":                                {ProtocolREST, []string{"versions"}, "it has the versions 1, 2 of the model ready", false, ""},
		"it writes beside it":                         {ProtocolREST, []string{"writes"}, "the server changed compiled in its folder", false, ""},
		"it does not get ready":                       {ProtocolREST, []string{"hangs"}, "", false, "the server fake was not ready after 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told, err := probed(t, c.protocol, c.faults...)
			if text := fmt.Sprint(err); c.err == "" && err != nil || !strings.Contains(text, c.err) {
				t.Fatalf("%v, want %q", err, c.err)
			}
			if told.Blank != c.blank || !strings.Contains(told.Disagrees, c.disagrees) || (told.Disagrees == "") != (c.disagrees == "") {
				t.Errorf("%+v", told)
			}
			if err == nil && (told.Server != "fake" || told.Version != "1.2.3" || !told.RepeatsIDs) {
				t.Errorf("%+v", told)
			}
		})
	}
}

// Faults of a server that its answers show.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults []string
		err    string // part of it; empty: the outputs differ
	}{
		"swapped outputs":            {[]string{"swapped"}, ""},
		"padding":                    {[]string{"pads"}, ""},
		"a batch axis too many":      {[]string{"axis"}, `output "y" is float32 [1 3]: the model has float32 [-1]`},
		"answers without ids":        {[]string{"forgets"}, "the answer names no request, and earlier ones did"},
		"a redirect":                 {[]string{"elsewhere"}, "status 307"},
		"JSON with three digits":     {[]string{"json", "short"}, ""},
		"a cache":                    {[]string{"caches"}, "something between repeats earlier answers"},
		"an error for one case":      {[]string{"fails"}, "case 2 (row 2 of cases.safetensors): the server answers: status 500: out of memory"},
		"it writes beside the files": {[]string{"writes"}, "the server changed compiled in its folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := asked(t, toolchain.VerbRun, ProtocolREST, c.faults...)
			r.Run.Rounds = 2
			_, err := Handle(t.Context(), r, t.Output())
			if c.err != "" {
				if !strings.Contains(fmt.Sprint(err), c.err) {
					t.Errorf("%v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want, _ := tensor.New(scaled(2.5), caseCount, 3)
			if got := outputs(t, r, "engine-0")["y"]; bytes.Equal(got.Data, want.Data) && slices.Equal(got.Shape, want.Shape) {
				t.Errorf("the fault does not show: %v", got.Float64s())
			}
		})
	}
}

// What JSON does not have says nothing against an engine.
func TestInexpressible(t *testing.T) {
	t.Parallel()
	r := asked(t, toolchain.VerbProbe, ProtocolREST, "json")
	x, err := tensor.New([]float32{1, 2, float32(math.NaN())}, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	var shard bytes.Buffer
	if err := tensorfile.Write(&shard, map[string]tensor.Tensor{"x": x}, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.Inputs[2].Path, shard.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Handle(t.Context(), r, t.Output())
	if !isUnavailable(err) || !strings.Contains(err.Error(), `input "x" has NaN, which JSON does not have`) {
		t.Errorf("%v", err)
	}
	half := tensor.Tensor{DType: tensor.Float16}
	if err := appendNumber(&half, json.Number("1")); !isUnavailable(err) {
		t.Errorf("float16: %v", err)
	}
}

// A text is sent as it is, also one that looks like the place of another input, and under a name that JSON writes in two ways.
func TestPlaces(t *testing.T) {
	t.Parallel()
	c := Config{Model: "m", Protocol: ProtocolTFServing}
	var inputs []named
	for _, name := range []string{"a&b", "c"} {
		slot := caserun.Slot{Name: name, DType: validators.Text, Shape: []int64{1}}
		packed, err := tensor.PackText([]string{"{c}"}, 1)
		if err != nil {
			t.Fatal(err)
		}
		c.Inputs, inputs = append(c.Inputs, slot), append(inputs, named{slot, packed})
	}
	var body []byte
	there := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { body, _ = io.ReadAll(r.Body) }))
	defer there.Close()
	asks, err := dial(c, addresses{http: there.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = asks.infer(t.Context(), "", inputs) // what it sends counts
	var sent struct{ Inputs map[string][]string }
	if err := json.Unmarshal(body, &sent); err != nil || !slices.Equal(sent.Inputs["a&b"], []string{"{c}"}) || !slices.Equal(sent.Inputs["c"], []string{"{c}"}) {
		t.Errorf("%s: %v", body, err)
	}
}

// Under load, every answer stays that of its case, and rates are measured on one start of the server.
func TestLoad(t *testing.T) {
	t.Parallel()
	r := asked(t, toolchain.VerbRun, ProtocolREST)
	r.Run.Rounds = 3
	r.Run.Engines = nil
	for i, load := range []toolchain.ServerLoad{{Clients: 1}, {Clients: 4}, {Clients: 4, Share: 0.5}} {
		r.Run.Engines = append(r.Run.Engines, toolchain.RunEngine{ID: fmt.Sprintf("load-%d", i), Path: r.Inputs[0].Path, ServerLoad: &load})
	}
	result, err := Handle(t.Context(), r, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	ran, _ := result.(toolchain.RunResult)
	want, _ := tensor.New(scaled(2.5), caseCount, 3)
	for i, e := range ran.Engines {
		if got := outputs(t, r, e.ID)["y"]; !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s: %v, want %v", e.ID, got.Float64s(), want.Float64s())
		}
		if len(e.TimingsNS) != 3*caseCount || e.PerSecond() <= 0 || (e.LoadNS > 0) != (i == 0) {
			t.Errorf("%+v", e)
		}
	}
	if len(ran.Engines) != 3 || ran.Engines[2].PerSecond() > ran.Engines[1].PerSecond() {
		t.Errorf("rates %v and %v, of which the second should be half of the highest", ran.Engines[1].PerSecond(), ran.Engines[2].PerSecond())
	}
}

// Cases under load end with the first that fails: each further one could take all the time that a request has.
func TestLoadEnds(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			requests.Add(1)
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer there.Close()
	r := asked(t, toolchain.VerbRun, ProtocolHTTP)
	c, _ := r.Options[OptionServer].(Config)
	c.Command, c.URL = nil, there.URL
	r.Options = map[string]any{OptionServer: c}
	r.Run.Engines[0].ServerLoad = &toolchain.ServerLoad{Clients: 1}
	_, err := Handle(t.Context(), r, t.Output())
	if text := fmt.Sprint(err); !strings.Contains(text, "status 500") || requests.Load() >= caseCount {
		t.Errorf("%d requests: %v", requests.Load(), err)
	}
}

// A request stops with its context, and leaves no server behind.
func TestStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := asked(t, toolchain.VerbRun, ProtocolREST, "hangs")
	_, err := Handle(ctx, r, writer(func([]byte) { cancel() })) // once the server runs
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// writer calls a function for what is written.
type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// Whatever a server answers, it is refused or gives outputs of the interface.
func FuzzAnswers(f *testing.F) {
	c := Config{Model: "m", Outputs: []caserun.Slot{slotY, slotZ}}
	f.Add([]byte(`{"id":"a","outputs":[{"name":"y","datatype":"FP32","shape":[1],"data":[1.5]},{"name":"z","datatype":"FP32","shape":[],"data":2}]}`), "")
	f.Add([]byte(`{"outputs":[{"name":"y","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}}]}`+"\x00\x00\x80\x3f"), "85")
	f.Add([]byte(`{"outputs":{"y":[[1,2],[3]],"z":[true]}}`), "-1")
	f.Add(appendBytes(appendBytes(nil, 5, appendText(appendText(nil, 1, "y"), 2, "FP32")), 6, []byte{0, 0, 0, 0}), "x")
	f.Fuzz(func(t *testing.T, data []byte, length string) {
		check := func(found []tensor.Tensor, err error) {
			if err != nil {
				return
			}
			for i, o := range found {
				if o.DType != c.Outputs[i].DType || o.Validate() != nil {
					t.Errorf("output %d is %+v", i, o)
				}
			}
			if len(found) != len(c.Outputs) {
				t.Errorf("%d outputs", len(found))
			}
		}
		check((&rest{config: c}).response("a", data, http.Header{lengthHeader: {length}}))
		check((&rpc{config: c}).response("a", data))
		check((&mapped{config: c, mapping: tfServing(c)}).response(data))
	})
}
