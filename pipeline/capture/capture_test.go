package capture_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/capture"
	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// service is a server of the protocol with a model "sum" that adds the numbers of each row of its input x,
// FP32 [-1, 2]. It remembers the bytes and headers that reached it.
type service struct {
	metadata string // what it says about the model; empty for nothing
	fail     bool

	mu       sync.Mutex
	bodies   [][]byte
	requests []*http.Request
}

const sumMetadata = `{"name": "sum", "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}], "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1]}]}`

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	s.mu.Lock()
	s.bodies, s.requests = append(s.bodies, body), append(s.requests, r)
	s.mu.Unlock()
	if r.Method == http.MethodGet {
		if s.metadata == "" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, s.metadata)
		return
	}
	sums, ok := sums(r.Header, body)
	if s.fail || !ok {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error": "no"}`)
		return
	}
	w.Header().Set("X-Served-By", "sum")
	_ = json.NewEncoder(w).Encode(map[string]any{"model_name": "sum", "outputs": []any{
		map[string]any{"name": "y", "datatype": "FP32", "shape": []int{len(sums)}, "data": sums},
	}})
}

// sums reads a request by the standard library alone.
func sums(header http.Header, body []byte) ([]float32, bool) {
	if header.Get("Content-Encoding") == "gzip" {
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, false
		}
		if body, err = io.ReadAll(r); err != nil {
			return nil, false
		}
	}
	text := body
	if n, err := strconv.Atoi(header.Get("Inference-Header-Content-Length")); err == nil {
		text = body[:n]
	}
	var request struct {
		Inputs []struct {
			Data []float32 `json:"data"`
		} `json:"inputs"`
	}
	if err := json.Unmarshal(text, &request); err != nil || len(request.Inputs) == 0 {
		return nil, false
	}
	values := request.Inputs[0].Data
	for rest := body[len(text):]; len(rest) >= 4; rest = rest[4:] {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(rest)))
	}
	var out []float32
	for pair := range slices.Chunk(values, 2) {
		out = append(out, pair[0]+pair[len(pair)-1])
	}
	return out, true
}

// request is the JSON of rows for the model.
func request(rows ...[2]float32) []byte {
	var values []float32
	for _, row := range rows {
		values = append(values, row[:]...)
	}
	data, _ := json.Marshal(values) // numbers
	return fmt.Appendf(nil, `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [%d, 2], "data": %s}]}`, len(rows), data)
}

// rig is a service, a recorder before it, and a client.
type rig struct {
	t        *testing.T
	service  *service
	upstream *httptest.Server
	proxy    *httptest.Server
	recorder *capture.Recorder
	to       string
	notes    *notes
}

type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

func newRig(t *testing.T, s *service, o capture.Options) *rig {
	t.Helper()
	g := &rig{t: t, service: s, to: filepath.Join(t.TempDir(), "recorded"), notes: &notes{}}
	if o.To != "" {
		g.to = o.To
	}
	g.upstream = httptest.NewServer(s)
	t.Cleanup(g.upstream.Close)
	g.start(o)
	return g
}

func (g *rig) start(o capture.Options) {
	g.t.Helper()
	upstream, err := url.Parse(g.upstream.URL)
	if err != nil {
		g.t.Fatal(err)
	}
	o.Upstream, o.To, o.Note = upstream, g.to, g.notes.add
	if o.Count == 0 {
		o.Count = 1000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	if o.Share == 0 {
		o.Share = 1
	}
	if g.recorder, err = capture.New(o); err != nil {
		g.t.Fatal(err)
	}
	g.proxy = httptest.NewServer(g.recorder)
	g.t.Cleanup(g.proxy.Close)
}

const inferSum = "/v2/models/sum/infer"

// post sends a request and returns the status and the body of the answer.
func (g *rig) post(path string, header http.Header, body []byte) (int, string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.proxy.URL+path, bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Error(err)
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		g.t.Error(err)
	}
	return answer.StatusCode, string(text)
}

// end closes the recorder and returns what it wrote, as values of a tensor by file.
func (g *rig) end() (capture.Recorded, []cases.Row) {
	g.t.Helper()
	g.proxy.Close()
	recorded, err := g.recorder.Close()
	if err != nil {
		g.t.Fatal(err)
	}
	var rows []cases.Row
	if err := cases.EachRow(recorded.Files, func(row cases.Row) error { rows = append(rows, row); return nil }); err != nil {
		g.t.Fatal(err)
	}
	if len(rows) != recorded.Cases {
		g.t.Errorf("the files have %d cases, want the %d that are reported", len(rows), recorded.Cases)
	}
	return recorded, rows
}

// pairs are the values of x of all cases, sorted.
func pairs(rows []cases.Row) [][]float64 {
	var out [][]float64
	for _, row := range rows {
		out = append(out, row["x"].Float64s())
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

func wantPairs(t *testing.T, rows []cases.Row, want ...[]float64) {
	t.Helper()
	if got := pairs(rows); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("recorded %v, want %v", got, want)
	}
}

func skipped(r capture.Recorded, reason string) int {
	for _, s := range r.Skipped {
		if s.Reason == reason {
			return s.Count
		}
	}
	return 0
}

// However a request is written, the service gets its bytes and the client the service's, and its rows are
// cases.
func TestRecordsWhatPasses(t *testing.T) {
	t.Parallel()
	text := `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}]}`
	var raw []byte
	for _, v := range []float32{5, 6} {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = zip.Write(request([2]float32{7, 8})) // to memory
	_ = zip.Close()
	g := newRig(t, &service{metadata: sumMetadata}, capture.Options{})
	for _, sent := range []struct {
		path   string
		header http.Header
		body   []byte
		want   string
	}{
		{inferSum, http.Header{"X-Forwarded-For": {"192.0.2.7"}}, request([2]float32{1, 2}, [2]float32{3, 4}), `"data":[3,7]`},
		{"/v2/models/sum/versions/3/infer?a=1;b", http.Header{"Inference-Header-Content-Length": {strconv.Itoa(len(text))}}, append([]byte(text), raw...), `"data":[11]`},
		{"/gateway" + inferSum, http.Header{"Content-Encoding": {"gzip"}}, packed.Bytes(), `"data":[15]`},
		{inferSum, nil, request([2]float32{1, 2}), `"data":[3]`}, // known
	} {
		status, answer := g.post(sent.path, sent.header, sent.body)
		if status != http.StatusOK || !strings.Contains(answer, sent.want) {
			t.Errorf("%s: status %d, answer %s, want %s", sent.path, status, answer, sent.want)
		}
		g.service.mu.Lock()
		at := slices.IndexFunc(g.service.bodies, func(b []byte) bool { return bytes.Equal(b, sent.body) })
		if at < 0 {
			t.Fatalf("%s: the service did not get the bytes that were sent", sent.path)
		}
		got := g.service.requests[at]
		if got.RequestURI != sent.path || got.Header.Get("X-Forwarded-For") != sent.header.Get("X-Forwarded-For") ||
			got.Header.Get("Content-Encoding") != sent.header.Get("Content-Encoding") || got.ContentLength != int64(len(sent.body)) {
			t.Errorf("%s: the service got %s with %v, want what was sent", sent.path, got.RequestURI, got.Header)
		}
		g.service.mu.Unlock()
	}
	recorded, rows := g.end()
	wantPairs(t, rows, []float64{1, 2}, []float64{3, 4}, []float64{5, 6}, []float64{7, 8})
	if recorded.Requests != 4 || recorded.Read != 5 || recorded.Duplicates != 1 || len(recorded.Skipped) > 0 || recorded.Model != "sum" {
		t.Errorf("got %+v, want 4 requests with 5 cases, one of them twice", recorded)
	}
	x := rows[0]["x"]
	if x.DType != tensor.Float32 || !slices.Equal(x.Shape, []int64{1, 2}) || len(rows[0]) != 1 {
		t.Errorf("a case is %v, want x alone, of float32 [1 2]", rows[0])
	}
}

// A request that cannot be recorded is answered all the same, and counted.
func TestSkips(t *testing.T) {
	t.Parallel()
	valid := request([2]float32{1, 2})
	for name, c := range map[string]struct {
		path   string
		header http.Header
		body   []byte
		reason string
	}{
		"another model":    {"/v2/models/other/infer", nil, valid, "for another model"},
		"refused":          {inferSum, nil, []byte("hello"), "answered with an error"},
		"negative size":    {inferSum, nil, []byte(`{"inputs":[{"name":"x","datatype":"FP32","shape":[-1,2],"data":[1,2]}]}`), "that could not be read"},
		"huge shape":       {inferSum, nil, []byte(`{"inputs":[{"name":"x","datatype":"FP32","shape":[99999999999,99999999999],"data":[1,2]}]}`), "that could not be read"},
		"wrong length":     {inferSum, nil, []byte(`{"inputs":[{"name":"x","datatype":"FP32","shape":[3,2],"data":[1,2]}]}`), "that could not be read"},
		"no batch":         {inferSum, nil, []byte(`{"inputs":[{"name":"x","datatype":"FP32","shape":[],"data":[1]}]}`), "that could not be read"},
		"a batch of none":  {inferSum, nil, []byte(`{"inputs":[{"name":"x","datatype":"FP32","shape":[99999,0],"data":[]}]}`), "that could not be read"},
		"another name":     {inferSum, nil, []byte(`{"inputs":[{"name":"z","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`), "with other inputs"},
		"another type":     {inferSum, nil, []byte(`{"inputs":[{"name":"x","datatype":"FP64","shape":[1,2],"data":[1,2]}]}`), "with other inputs"},
		"another rank":     {inferSum, nil, []byte(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1,2],"data":[1,2]}]}`), "with other inputs"},
		"zstd":             {inferSum, http.Header{"Content-Encoding": {"zstd"}}, valid, "that could not be read"},
		"more than memory": {inferSum, nil, fmt.Appendf(nil, `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,300000],"data":[0%s]}]}`, strings.Repeat(",0", 299_999)), "too large"},
		"more than a copy": {inferSum, nil, append(slices.Clone(valid), bytes.Repeat([]byte(" "), 64<<20)...), "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, &service{metadata: sumMetadata}, capture.Options{Model: "sum"})
			if status, answer := g.post(inferSum, nil, request([2]float32{3, 4})); status != http.StatusOK {
				t.Fatalf("status %d, answer %s", status, answer)
			}
			direct, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.upstream.URL+c.path, bytes.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			direct.Header = c.header.Clone()
			want, err := http.DefaultClient.Do(direct)
			if err != nil {
				t.Fatal(err)
			}
			defer want.Body.Close()
			text, err := io.ReadAll(want.Body)
			if err != nil {
				t.Fatal(err)
			}
			if status, answer := g.post(c.path, c.header, c.body); status != want.StatusCode || answer != string(text) {
				t.Errorf("status %d, answer %s, want what the service answers: %d %s", status, answer, want.StatusCode, text)
			}
			recorded, rows := g.end()
			wantPairs(t, rows, []float64{3, 4})
			if skipped(recorded, c.reason) != 1 || len(recorded.Skipped) != 1 {
				t.Errorf("skipped %+v, want one %q", recorded.Skipped, c.reason)
			}
		})
	}
}

// A request for a model that the service does not know does not keep out those for the one that it has.
func TestModelIsOneThatIsAnswered(t *testing.T) {
	t.Parallel()
	g := newRig(t, &service{metadata: sumMetadata}, capture.Options{})
	if status, _ := g.post("/v2/models/nonsense/infer", nil, []byte("hello")); status != http.StatusBadRequest {
		t.Fatalf("status %d for nonsense, want 400", status)
	}
	for _, path := range []string{inferSum, "/v2/models/other/infer"} {
		if status, answer := g.post(path, nil, request([2]float32{1, 2})); status != http.StatusOK {
			t.Fatalf("%s: status %d, answer %s", path, status, answer)
		}
	}
	recorded, rows := g.end()
	wantPairs(t, rows, []float64{1, 2})
	if recorded.Model != "sum" || skipped(recorded, "answered with an error") != 1 || skipped(recorded, "for another model") != 1 {
		t.Errorf("model %q, skipped %+v, want sum, one error, and one for another model", recorded.Model, recorded.Skipped)
	}
}

// Cases of production are read by their owner alone.
func TestRecordedCasesArePrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	g := newRig(t, &service{metadata: sumMetadata}, capture.Options{})
	if status, answer := g.post(inferSum, nil, request([2]float32{1, 2})); status != http.StatusOK {
		t.Fatalf("status %d, answer %s", status, answer)
	}
	recorded, _ := g.end()
	for _, c := range []struct {
		path string
		want os.FileMode
	}{{recorded.Folder, 0o700}, {recorded.Files[0], 0o600}} {
		info, err := os.Stat(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != c.want {
			t.Errorf("%s has mode %o, want %o", c.path, got, c.want)
		}
	}
}

// An input without a batch counts for each row of a request, so that few bytes do not make endless work.
func TestSharedInputsAreBounded(t *testing.T) {
	t.Parallel()
	const rows, values = 2000, 200_000 // 1.6 GB as cases
	metadata := `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}, {"name": "z", "datatype": "FP32", "shape": [200000]}]}`
	g := newRig(t, &service{metadata: metadata}, capture.Options{MaxBytes: 4 << 20})
	body := fmt.Appendf(nil,
		`{"inputs": [{"name": "x", "datatype": "FP32", "shape": [%d, 2], "data": [0%s]}, {"name": "z", "datatype": "FP32", "shape": [%d], "data": [0%s]}]}`,
		rows, strings.Repeat(",0", 2*rows-1), values, strings.Repeat(",0", values-1))
	if status, answer := g.post(inferSum, nil, body); status != http.StatusOK {
		t.Fatalf("status %d, answer %s", status, answer)
	}
	recorded, _ := g.end()
	if recorded.Read != 0 || skipped(recorded, "too large") != 1 {
		t.Errorf("%d cases were read, skipped %+v, want one request too large", recorded.Read, recorded.Skipped)
	}
}

// Where the service is down, clients learn it, nothing is recorded, and the folder is as before.
func TestServiceDown(t *testing.T) {
	t.Parallel()
	g := newRig(t, &service{metadata: sumMetadata}, capture.Options{})
	g.upstream.Close()
	status, answer := g.post(inferSum, nil, request([2]float32{1, 2}))
	if status != http.StatusBadGateway || !json.Valid([]byte(answer)) || !strings.Contains(answer, `"error"`) {
		t.Errorf("status %d, answer %s, want 502 and an error of the protocol", status, answer)
	}
	recorded, _ := g.end()
	if skipped(recorded, "not answered by the service") != 1 {
		t.Errorf("skipped %+v, want the request that was not answered", recorded.Skipped)
	}
	if err := recorded.None(); !registry.HasCode(err, registry.CodeNotFound) ||
		!strings.Contains(strings.Join(registry.Hints(err), ""), "not answered") {
		t.Errorf("error %v with hints %v, want why there is no case", err, registry.Hints(err))
	}
	if _, err := os.Stat(g.to); !os.IsNotExist(err) {
		t.Errorf("the folder is there (%v), want none without cases", err)
	}
}

// A client that leaves in the middle of its request costs nothing but the case.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	g := newRig(t, &service{metadata: sumMetadata}, capture.Options{})
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.proxy.URL+inferSum, r)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error)
	go func() {
		_, err := w.Write(request([2]float32{1, 2})[:20])
		w.CloseWithError(fmt.Errorf("left: %w", err))
		gone <- err
	}()
	if answer, err := http.DefaultClient.Do(req); err == nil {
		answer.Body.Close()
		t.Errorf("status %d for a request that broke off", answer.StatusCode)
	}
	<-gone
	if status, _ := g.post(inferSum, nil, request([2]float32{3, 4})); status != http.StatusOK {
		t.Errorf("status %d after another client left", status)
	}
	_, rows := g.end()
	wantPairs(t, rows, []float64{3, 4})
}

// Many clients at once: each gets its own answer, and the sample is one of all cases that is the same each
// time.
func TestConcurrentClients(t *testing.T) {
	t.Parallel()
	const clients, each, count = 8, 25, 40
	record := func() [][]float64 {
		g := newRig(t, &service{metadata: sumMetadata}, capture.Options{Count: count, Seed: 5})
		var wait sync.WaitGroup
		for client := range clients {
			wait.Go(func() {
				for i := range each {
					a, b := float32(client), float32(i)
					want := fmt.Sprintf(`"data":[%v]`, a+b)
					if status, answer := g.post(inferSum, nil, request([2]float32{a, b})); status != http.StatusOK || !strings.Contains(answer, want) {
						t.Errorf("status %d, answer %s, want %s", status, answer, want)
					}
				}
			})
		}
		wait.Wait()
		recorded, rows := g.end()
		if recorded.Read != clients*each || len(recorded.Skipped) > 0 {
			t.Errorf("got %+v, want %d cases and none skipped", recorded, clients*each)
		}
		return pairs(rows)
	}
	first, second := record(), record()
	if len(first) != count || !slices.EqualFunc(first, second, slices.Equal) {
		t.Errorf("samples of %d and %d cases, want the same %d", len(first), len(second), count)
	}
}

// What the service says of shapes, or the model, decides what a case is.
func TestBatches(t *testing.T) {
	t.Parallel()
	open, two := validators.Dim{Symbol: "N"}, validators.Dim{Size: 2}
	iface := func(dims ...validators.Dim) *validators.Interface {
		i := validators.Interface{Inputs: []validators.TensorInfo{{Name: "x", DType: tensor.Float32, Shape: dims}}}
		for _, d := range dims {
			if d.Symbol != "" {
				i.Dims = map[string]validators.DimRange{d.Symbol: {Min: 1, Opt: 1, Max: 8}}
			}
		}
		return &i
	}
	for name, c := range map[string]struct {
		metadata string
		iface    *validators.Interface
		cases    int
		shape    []int64
		warned   bool
	}{
		"the service says a batch":    {sumMetadata, nil, 2, []int64{1, 2}, false},
		"the service says none":       {strings.Replace(sumMetadata, "[-1, 2]", "[2, 2]", 1), nil, 1, []int64{1, 2, 2}, false},
		"no source says it":           {"", nil, 2, []int64{1, 2}, true},
		"the service says junk":       {"{", nil, 2, []int64{1, 2}, true},
		"the model says a batch":      {"", iface(open, two), 2, []int64{1, 2}, false},
		"the model says none":         {sumMetadata, iface(two, two), 1, []int64{1, 2, 2}, false},
		"the model says another size": {sumMetadata, iface(open, validators.Dim{Size: 3}), 0, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, &service{metadata: c.metadata}, capture.Options{Interface: c.iface})
			g.post(inferSum, nil, request([2]float32{1, 2}, [2]float32{3, 4}))
			recorded, rows := g.end()
			if len(rows) != c.cases || len(rows) > 0 && !slices.Equal(rows[0]["x"].Shape, c.shape) {
				t.Errorf("recorded %v (%+v), want %d cases of %v", rows, recorded, c.cases, c.shape)
			}
		})
	}
}

// With outputs, a case has what the service answered for it.
func TestOutputs(t *testing.T) {
	t.Parallel()
	g := newRig(t, &service{metadata: sumMetadata}, capture.Options{Outputs: true})
	g.post(inferSum, nil, request([2]float32{1, 2}, [2]float32{3, 4}))
	_, rows := g.end()
	for _, row := range rows {
		x, y := row["x"].Float64s(), row[cases.ServedPrefix+"y"]
		if y.DType != tensor.Float32 || !slices.Equal(y.Float64s(), []float64{x[0] + x[1]}) {
			t.Errorf("for %v the service answered %v, want the sum", x, y)
		}
	}
	if len(rows) != 2 {
		t.Errorf("%d cases, want 2", len(rows))
	}
}

// Cases are added to those in a folder, each once, and only where they are alike.
func TestAppend(t *testing.T) {
	t.Parallel()
	g := newRig(t, &service{metadata: sumMetadata}, capture.Options{})
	g.post(inferSum, nil, request([2]float32{1, 2}))
	first, _ := g.end()

	again := newRig(t, &service{metadata: sumMetadata}, capture.Options{To: g.to, Add: true})
	again.post(inferSum, nil, request([2]float32{1, 2}, [2]float32{3, 4}))
	second, rows := again.end()
	wantPairs(t, rows, []float64{3, 4})
	if second.Duplicates != 1 || slices.Equal(first.Files, second.Files) {
		t.Errorf("got %+v after %+v, want one duplicate and another file", second, first)
	}

	other := newRig(t, &service{}, capture.Options{To: g.to, Add: true})
	other.post(inferSum, nil, []byte(`{"inputs":[{"name":"z","datatype":"FP32","shape":[1,2],"data":[1,2]}]}`))
	third, _ := other.end()
	if third.Cases != 0 || skipped(third, "with other inputs") != 1 {
		t.Errorf("got %+v, want nothing of another input", third)
	}
	if files, err := cases.FilesOf(g.to); err != nil || len(files) != 2 {
		t.Errorf("the folder has %v (%v), want what was there before", files, err)
	}
	if _, err := capture.New(capture.Options{To: g.to}); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("without append: error %v, want one about the folder", err)
	}
}

// Only the inputs that are named are recorded, and only a share of the requests is read.
func TestSelects(t *testing.T) {
	t.Parallel()
	body := []byte(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]},{"name":"secret","datatype":"INT64","shape":[1,1],"data":[42]}]}`)
	g := newRig(t, &service{}, capture.Options{Inputs: []string{"x"}})
	g.post(inferSum, nil, body)
	if _, rows := g.end(); len(rows) != 1 || len(rows[0]) != 1 || !slices.Equal(rows[0]["x"].Float64s(), []float64{1, 2}) {
		t.Errorf("recorded %v, want x alone", rows)
	}
	g = newRig(t, &service{}, capture.Options{Inputs: []string{"z"}})
	g.post(inferSum, nil, body)
	if recorded, rows := g.end(); len(rows) != 0 || skipped(recorded, "with other inputs") != 1 {
		t.Errorf("recorded %v (%+v), want nothing without z", rows, recorded)
	}
	g = newRig(t, &service{metadata: sumMetadata}, capture.Options{Share: 0.25, Seed: 3})
	for i := range 200 {
		g.post(inferSum, nil, request([2]float32{1, float32(i)}))
	}
	if recorded, _ := g.end(); recorded.Cases < 25 || recorded.Cases > 80 || recorded.Requests != 200 {
		t.Errorf("a share of 0.25 of 200 requests is %d cases: %+v", recorded.Cases, recorded)
	}
}
