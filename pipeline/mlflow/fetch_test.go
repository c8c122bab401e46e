package mlflow

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// hostile is a server that answers as a test wants: MLflow itself never does, and `make interop` asks a real one.
type hostile struct {
	answers map[string]func(w http.ResponseWriter, r *http.Request) // by path and query
	asked   []string
}

func text(s string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
}

const onnxModel = "flavors:\n  onnx:\n    data: model.onnx\n"

// newHostile answers for version 1 of the model m as MLflow does, until a test replaces an answer.
func newHostile() *hostile {
	return &hostile{answers: map[string]func(http.ResponseWriter, *http.Request){
		"/api/2.0/mlflow/model-versions/get":                  text(`{"model_version": {"version": "1", "run_id": "abc", "status": "READY"}}`),
		"/api/2.0/mlflow/model-versions/get-download-uri":     text(`{"artifact_uri": "mlflow-artifacts:/1/models/m/artifacts"}`),
		artifact("MLmodel"):                                   text(onnxModel),
		artifact("model.onnx"):                                text("bytes"),
		"/api/2.0/mlflow/registered-models/alias":             text(`{"model_version": {"version": "7", "status": "READY"}}`),
		"/api/2.0/mlflow-artifacts/artifacts":                 text(`{"files": []}`),
		"/api/2.0/mlflow/runs/get":                            text(`{"run": {"info": {"artifact_uri": "mlflow-artifacts:/1/abc/artifacts"}, "outputs": {"model_outputs": [{"model_id": "m-1"}]}}}`),
		"/api/2.0/mlflow/logged-models/m-1":                   text(`{"model": {"info": {"name": "net", "artifact_uri": "mlflow-artifacts:/1/models/m/artifacts"}}}`),
		"/api/2.0/mlflow-artifacts/artifacts/1/abc/artifacts": text(""),
	}}
}

func artifact(name string) string {
	return "/api/2.0/mlflow-artifacts/artifacts/1/models/m/artifacts/" + name
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked = append(h.asked, r.URL.Path)
	if answer, ok := h.answers[r.URL.Path]; ok {
		answer(w, r)
		return
	}
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "nothing here"}`))
}

// fetch asks a server for a model, and returns the folder that it went to.
func fetch(t *testing.T, h http.Handler, ref Ref, o Options) (Model, string, error) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client, err := NewClient(Config{URL: server.URL + "/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if o.Folder == "" {
		o.Folder = t.TempDir()
	}
	m, err := Fetch(t.Context(), client, ref, o)
	return m, o.Folder, err
}

func hints(err error) string { return strings.Join(registry.Hints(err), "\n") }

func names(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

var first = Ref{Name: "m", Version: "1"}

func TestFetch(t *testing.T) {
	t.Parallel()
	h := newHostile()
	m, folder, err := fetch(t, h, first, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Origin.Digest != "sha256:277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9" || m.Origin.URI != "mlflow:models:/m/1" || m.Origin.Run != "abc" {
		t.Errorf("the origin is %+v", m.Origin)
	}
	if err := m.Done(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, folder); got != "m.onnx" {
		t.Errorf("the folder has %s, want m.onnx alone", got)
	}
	if _, _, err := fetch(t, h, first, Options{Folder: folder}); registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(hints(err), "--force") {
		t.Errorf("a second time: %v, want a refusal, with a hint", err)
	}
	again, _, err := fetch(t, h, first, Options{Folder: folder, Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Done(); err != nil {
		t.Error(err)
	}
	if err := again.Discard(); err != nil || names(t, folder) != "m.onnx" {
		t.Errorf("a file that was there before is gone after an error (%v)", err)
	}
	if err := m.Discard(); err != nil || names(t, folder) != "" {
		t.Errorf("after an error, the folder has %s (%v)", names(t, folder), err)
	}
}

// An alias becomes a version, and a model of a run is found where MLflow 3 keeps it.
func TestFetchResolves(t *testing.T) {
	t.Parallel()
	m, _, err := fetch(t, newHostile(), Ref{Name: "m", Alias: "champion"}, Options{})
	if err != nil || m.Origin.URI != "mlflow:models:/m/7" {
		t.Errorf("an alias: %+v, error %v", m.Origin, err)
	}
	m, folder, err := fetch(t, newHostile(), Ref{Run: "abc", Path: "net"}, Options{})
	if err != nil || m.Origin.URI != "mlflow:runs:/abc/net" || m.Origin.Run != "abc" || filepath.Base(m.File) != "net.onnx" {
		t.Errorf("a run: %+v in %s, error %v", m.Origin, folder, err)
	}
}

// A model can have files with weights, which the digest covers with their names.
func TestFetchFurtherFiles(t *testing.T) {
	t.Parallel()
	h := newHostile()
	h.answers[artifact("model.data")] = text("weights")
	more := func(name string) Options {
		return Options{More: func(string) ([]string, error) { return []string{name}, nil }}
	}
	m, folder, err := fetch(t, h, first, more("model.data"))
	want := spec.PinOf(map[string]registry.Digest{
		"m.onnx":     "sha256:277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9",
		"model.data": "sha256:9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c",
	})
	if err != nil || m.Done() != nil || names(t, folder) != "m.onnx model.data" {
		t.Fatalf("the folder has %s, error %v", names(t, folder), err)
	}
	data, err := os.ReadFile(filepath.Join(folder, "model.data"))
	if err != nil || string(data) != "weights" || m.Origin.Digest != want.String() {
		t.Errorf("weights %q (error %v), digest %s", data, err, m.Origin.Digest)
	}
	for _, name := range []string{"../model.data", "/etc/passwd", "a/b", "m.onnx", ""} {
		if _, folder, err := fetch(t, h, first, more(name)); registry.CodeOf(err) != registry.CodeInvalid || names(t, folder) != "" {
			t.Errorf("the file %q: %v, folder %s", name, err, names(t, folder))
		}
	}
}

// What a server answers, nothing leaves the folder, and an error leaves nothing there.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another server is asked") }))
	t.Cleanup(elsewhere.Close)
	away := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }
	uri := func(s string) map[string]func(http.ResponseWriter, *http.Request) {
		return map[string]func(http.ResponseWriter, *http.Request){"/api/2.0/mlflow/model-versions/get-download-uri": text(`{"artifact_uri": "` + s + `"}`)}
	}
	type answers = map[string]func(http.ResponseWriter, *http.Request)
	keras := "flavors:\n  keras:\n    data: data\n"
	list := func(entries string) answers {
		return answers{artifact("MLmodel"): text(keras), "/api/2.0/mlflow-artifacts/artifacts": text(`{"files": [` + entries + `]}`)}
	}
	for name, c := range map[string]struct {
		answers answers
		code    registry.Code
		want    string
	}{
		"another version":              {answers{"/api/2.0/mlflow/model-versions/get": text(`{"model_version": {"version": "2"}}`)}, registry.CodeInvalid, "answers with version"},
		"no version":                   {answers{"/api/2.0/mlflow/model-versions/get": text(`{}`)}, registry.CodeInvalid, "answers with version"},
		"a pending version":            {answers{"/api/2.0/mlflow/model-versions/get": text(`{"model_version": {"version": "1", "status": "PENDING_REGISTRATION"}}`)}, registry.CodeInvalid, "want READY"},
		"a run that is none":           {answers{"/api/2.0/mlflow/model-versions/get": text(`{"model_version": {"version": "1", "run_id": "../x"}}`)}, registry.CodeInvalid, "no ID of a run"},
		"HTML":                         {answers{"/api/2.0/mlflow/model-versions/get": text(`<html>`)}, registry.CodeInvalid, "not the JSON of MLflow"},
		"an endless answer":            {answers{"/api/2.0/mlflow/model-versions/get": text(`"` + strings.Repeat("x", maxAnswer+1) + `"`)}, registry.CodeInvalid, "more than"},
		"a redirect of the API":        {answers{"/api/2.0/mlflow/model-versions/get": away}, registry.CodeInvalid, "redirects to"},
		"a redirect of the model":      {answers{artifact("model.onnx"): away}, registry.CodeInvalid, "redirects to"},
		"a bucket":                     {uri("s3://bucket/path"), registry.CodeInvalid, "keeps the artifacts at s3://bucket"},
		"a folder":                     {uri("/mnt/models"), registry.CodeInvalid, "keeps the artifacts at"},
		"another host":                 {uri("mlflow-artifacts://elsewhere.example/1"), registry.CodeInvalid, "only artifacts that it hands out itself"},
		"another server":               {uri(elsewhere.URL + "/api/2.0/mlflow-artifacts/artifacts/1"), registry.CodeInvalid, "only artifacts that it hands out itself"},
		"a path that climbs":           {uri("mlflow-artifacts:/1/../../x"), registry.CodeInvalid, "of artifacts is none"},
		"no MLmodel":                   {answers{artifact("MLmodel"): http.NotFound}, registry.CodeNotFound, "no file MLmodel"},
		"a model without a file":       {answers{artifact("model.onnx"): http.NotFound}, registry.CodeNotFound, "404"},
		"a file that ends early":       {answers{artifact("model.onnx"): func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "100") }}, registry.CodeUnavailable, ""},
		"a listing that climbs":        {list(`{"path": "../../x", "is_dir": true}`), registry.CodeInvalid, "has no plain name"},
		"a listing of paths":           {list(`{"path": "a/b", "is_dir": false}`), registry.CodeInvalid, "has no plain name"},
		"a folder in itself":           {list(`{"path": "variables", "is_dir": true}, {"path": "saved_model.pb", "is_dir": false}, {"path": "model", "is_dir": true}`), registry.CodeInvalid, ""},
		"very many files":              {list(strings.TrimSuffix(strings.Repeat(`{"path": "a"},`, maxFiles+1), ",")), registry.CodeInvalid, "want at most"},
		"a folder without a model":     {list(``), registry.CodeInvalid, "no model that is read"},
		"legacy .h5":                   {list(`{"path": "model.h5"}`), registry.CodeInvalid, "a file of a kind that is not read"},
		"a pickle":                     {answers{artifact("MLmodel"): text("flavors:\n  sklearn:\n    pickled_model: model.pkl\n")}, registry.CodeUnsafe, "has a pickle"},
		"an example that climbs":       {answers{artifact("MLmodel"): text(onnxModel + "saved_input_example_info:\n  artifact_path: ../x\n  type: ndarray\n")}, registry.CodeInvalid, "leads out"},
		"an example that is not there": {answers{artifact("MLmodel"): text(onnxModel + "saved_input_example_info:\n  artifact_path: x\n  type: ndarray\n")}, registry.CodeNotFound, ""},
		"no credentials":               {answers{"/api/2.0/mlflow/model-versions/get": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }}, registry.CodeUnauthenticated, "401"},
		"no permission":                {answers{"/api/2.0/mlflow/model-versions/get": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }}, registry.CodeForbidden, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostile()
			for path, answer := range c.answers {
				h.answers[path] = answer
			}
			_, folder, err := fetch(t, h, first, Options{})
			if registry.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("error %v (%s), want %s: %s", err, registry.CodeOf(err), c.code, c.want)
			}
			if left := names(t, folder); left != "" {
				t.Errorf("the folder has %s", left)
			}
		})
	}
}

// Credentials go to the server, by MLflow's rules, and never over a network in the clear.
func TestCredentials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"none":       {Config{}, ""},
		"a token":    {Config{Token: "t"}, "Bearer t"},
		"a password": {Config{Username: "u", Password: "p", Token: "t"}, "Basic dTpw"},
	} {
		got := "nothing was asked"
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
		t.Cleanup(server.Close)
		c.config.URL = server.URL
		client, err := NewClient(c.config)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = Fetch(t.Context(), client, first, Options{Folder: t.TempDir()})
		client.Close()
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for name, c := range map[string]Config{
		"nothing":               {},
		"a folder":              {URL: "./mlruns"},
		"a database":            {URL: "sqlite:///mlflow.db"},
		"Databricks":            {URL: "databricks"},
		"a password in the URL": {URL: "https://u:secret@example.com"},
		"half a password":       {URL: "https://example.com", Username: "u"},
		"a token over http":     {URL: "http://example.com", Token: "secret"},
		"a password over http":  {URL: "http://10.0.0.1:5000", Username: "u", Password: "secret"},
		"no file of CAs":        {URL: "https://example.com", CAFile: "missing.pem"},
	} {
		if _, err := NewClient(c); registry.CodeOf(err) != registry.CodeInvalid || strings.Contains(fmt.Sprint(err)+hints(err), "secret") {
			t.Errorf("%s: %v, want CodeInvalid without the secret", name, err)
		}
	}
}
