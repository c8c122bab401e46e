//go:build cgo

package endtoend

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// trackingServer is a real MLflow server, on a database and a folder of its own.
type trackingServer struct {
	url    string
	python string // that runs it, and logs models
}

// newTrackingServer starts MLflow. It skips the test if no Python has it.
func newTrackingServer(t *testing.T) trackingServer {
	t.Helper()
	python := os.Getenv("MLPROMOTE_MLFLOW_PYTHON")
	if python == "" {
		t.Skip("MLPROMOTE_MLFLOW_PYTHON names no Python; make interop makes one")
	}
	dir := t.TempDir()
	listen := freeAddress(t)
	cmd := exec.CommandContext(t.Context(), python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", listen[strings.LastIndex(listen, ":")+1:],
		"--workers", "1", "--backend-store-uri", "sqlite:///"+filepath.Join(dir, "mlflow.db"), "--artifacts-destination", filepath.Join(dir, "artifacts"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MLFLOW_DISABLE_TELEMETRY=true", "DO_NOT_TRACK=true")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	startGroup(t, cmd)
	s := trackingServer{"http://" + listen, python}
	programtest.Within(t, 5*time.Minute, "MLflow", func() bool {
		response, err := http.Get(s.url + "/health")
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})
	return s
}

// startGroup starts a program, which is ended with its children at the end of the test.
func startGroup(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	registrytest.EndWithTests(cmd)
	cmd.Cancel = func() error { return cmd.Process.Kill() }
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// freeAddress is an address of this machine that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// env has the server, and its Python first on the path.
func (s trackingServer) env(program string) []string {
	return []string{
		"MLFLOW_TRACKING_URI=" + s.url, "MLFLOW_DISABLE_TELEMETRY=true", "DO_NOT_TRACK=true",
		"PATH=" + filepath.Dir(s.python) + ":" + filepath.Dir(program) + ":" + os.Getenv("PATH"),
	}
}

// get asks the REST API of MLflow.
func (s trackingServer) get(t *testing.T, endpoint string, query url.Values, into any) error {
	t.Helper()
	response, err := http.Get(s.url + "/api/2.0/mlflow/" + endpoint + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

// TestMLflow executes the page of MLflow, fetches a model of each flavor, and lets the receiver write a promotion back.
func TestMLflow(t *testing.T) {
	t.Parallel()
	mlflow := newTrackingServer(t)
	program := programtest.Program(t)
	t.Run("page", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		runBlocks(t, program, "docs/how-to/mlflow.md", "", dir, mlflow.env(program)...)
		mlflow.testReceiver(t, program, filepath.Join(dir, "wine"))
	})
	t.Run("flavors", func(t *testing.T) {
		t.Parallel()
		mlflow.testFlavors(t, program)
	})
}

// testReceiver promotes the model in a folder with a service that calls the receiver.
func (s trackingServer) testReceiver(t *testing.T, program, folder string) {
	root := t.TempDir()
	service := programtest.NewService(t, program, root)
	service.Flags = []string{"--private-webhooks-unsafe"}
	service.MustStart(t)
	if err := service.ShareKeys(); err != nil {
		t.Fatal(err)
	}
	listen := freeAddress(t)
	env := append(service.ClientEnv(), s.env(program)...)
	runBlocks(t, program, "docs/how-to/mlflow.md", "receiver", folder, append(env, "RECEIVER=http://"+listen+"/", "MLPROMOTE_TOKEN=")...)
	data, err := os.ReadFile(filepath.Join(folder, "webhook.json"))
	var hook struct{ Secret string }
	if err := errors.Join(err, json.Unmarshal(data, &hook)); err != nil || hook.Secret == "" {
		t.Fatalf("the webhook is %s (error %v), want one with a secret", data, err)
	}
	receiver := exec.CommandContext(t.Context(), "/usr/bin/env", "python3", programtest.Root("examples", "mlflow", "receiver.py"))
	receiver.Env = append(append(os.Environ(), s.env(program)...), "LISTEN="+listen, "MLPROMOTE_SERVER="+service.URL, "WEBHOOK_SECRET="+hook.Secret)
	startGroup(t, receiver)
	programtest.Eventually(t, "the receiver", func() bool {
		response, err := http.Post("http://"+listen+"/", "application/json", strings.NewReader(`{"type": "promote", "data": {}}`))
		if err != nil {
			return false
		}
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("a message without a signature: %s, want 401", response.Status)
		}
		return response.Body.Close() == nil
	})
	refusesForged(t, "http://"+listen+"/", hook.Secret)
	runBlocks(t, program, "docs/how-to/mlflow.md", "promote", folder, env...)
	var version struct {
		Version struct {
			Version string
			Tags    []struct{ Key, Value string }
		} `json:"model_version"`
	}
	programtest.Eventually(t, "the alias", func() bool {
		return s.get(t, "registered-models/alias", url.Values{"name": {"wine"}, "alias": {"prod"}}, &version) == nil && version.Version.Version == "1"
	})
	tags := make(map[string]string)
	for _, tag := range version.Version.Tags {
		tags[tag.Key] = tag.Value
	}
	head, err := exec.CommandContext(t.Context(), "curl", "-fsS", service.URL+"/api/v1/heads?environment=prod").Output()
	if err != nil {
		t.Fatal(err)
	}
	if tags["mlpromote.prod.version"] != "0.1.0" || tags["mlpromote.prod.verdict"] != "1 pass" || !strings.Contains(string(head), fmt.Sprintf("%q", tags["mlpromote.prod.release"])) {
		t.Errorf("the tags are %v, and the head of prod is %s", tags, head)
	}
}

// refusesForged sends messages to a receiver that it must not take: with another key, for another body, and of an hour ago.
func refusesForged(t *testing.T, receiver, secret string) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"type": "damage", "data": []}`
	now := time.Now()
	for name, c := range map[string]struct {
		key    []byte
		signed string
		at     time.Time
		want   int
	}{
		"as the service sends it": {key, body, now, http.StatusNoContent},
		"another key":             {[]byte("other"), body, now, http.StatusUnauthorized},
		"another body":            {key, body + " ", now, http.StatusUnauthorized},
		"an hour old":             {key, body, now.Add(-time.Hour), http.StatusUnauthorized},
	} {
		stamp := strconv.FormatInt(c.at.Unix(), 10)
		mac := hmac.New(sha256.New, c.key)
		mac.Write([]byte("id." + stamp + "." + c.signed))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, receiver, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("webhook-id", "id")
		r.Header.Set("webhook-timestamp", stamp)
		r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if response.Body.Close() != nil || response.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", name, response.Status, c.want)
		}
	}
}

// logFlavors logs a model of each flavor that needs no package of gigabytes.
const logFlavors = `
import mlflow, numpy as np, onnx, lightgbm, xgboost
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_iris

table, kind = load_iris(return_X_y=True, as_frame=True)
booster = xgboost.train({"objective": "multi:softprob", "num_class": 3}, xgboost.DMatrix(table, kind), 3)
for end in ["ubj", "json"]:
    mlflow.xgboost.log_model(booster, name="model", registered_model_name="xgboost-" + end, model_format=end)
trees = lightgbm.train({"objective": "multiclass", "num_class": 3, "verbose": -1}, lightgbm.Dataset(table, kind), 3)
mlflow.lightgbm.log_model(trees, name="model", registered_model_name="lightgbm-text")
mlflow.lightgbm.log_model(lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(table, kind), name="model", registered_model_name="lightgbm-classifier")
weights = numpy_helper.from_array(np.eye(64, dtype=np.float32), "w")
graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 64])], [weights])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
with mlflow.start_run() as run:
    mlflow.onnx.log_model(model, name="net", registered_model_name="onnx-graph", input_example=np.random.default_rng(1).random((30, 64), dtype=np.float32))
mlflow.MlflowClient().set_registered_model_alias("onnx-graph", "champion", "1")
print("RUN=" + run.info.run_id)
`

// testFlavors fetches a model of each flavor.
func (s trackingServer) testFlavors(t *testing.T, program string) {
	dir := t.TempDir()
	log := exec.CommandContext(t.Context(), s.python, "-c", logFlavors)
	log.Dir, log.Env = dir, append(os.Environ(), s.env(program)...)
	out, err := log.Output()
	_, run, ok := strings.Cut(string(out), "RUN=")
	if run, _, _ = strings.Cut(run, "\n"); err != nil || !ok {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Logf("%s", failed.Stderr)
		}
		t.Fatalf("the models were not logged: %v\n%s", err, out)
	}
	for name, c := range map[string]struct {
		address string
		exit    int
		file    string
		want    string
	}{
		"ubj":                   {"models:/xgboost-ubj/1", 0, "xgboost-ubj.ubj", "format: xgboost"},
		"json":                  {"models:/xgboost-json/1", 0, "xgboost-json.json", "format: xgboost"},
		"text":                  {"models:/lightgbm-text/1", 0, "lightgbm-text.txt", "format: lightgbm"},
		"a classifier":          {"models:/lightgbm-classifier/1", 2, "", "log_model(model.booster_"},
		"onnx":                  {"models:/onnx-graph@champion", 0, "onnx-graph.onnx", "mlflow:models:/onnx-graph/1"},
		"a run":                 {"runs:/" + run + "/net", 0, "net.onnx", "mlflow:runs:/" + run + "/net"},
		"a run without a model": {"runs:/" + run + "/other", 8, "", "no file MLmodel"},
		"no such run":           {"runs:/0123/net", 8, "", "0123"},
		"no such version":       {"models:/onnx-graph/7", 8, "", "version=7"},
		"no such alias":         {"models:/onnx-graph@nobody", 8, "", "nobody"},
		"no such model":         {"models:/nothing/1", 8, "", "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			cmd := exec.CommandContext(t.Context(), program, "init", "mlflow:"+c.address)
			cmd.Dir = folder
			cmd.Env = append(append(os.Environ(), programtest.Environment(t.TempDir(), programtest.Cache(t))...), s.env(program)...)
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != c.exit {
				t.Fatalf("exit code %d, want %d\n%s", got, c.exit, out)
			}
			if c.exit != 0 {
				if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 || !strings.Contains(string(out), c.want) {
					t.Errorf("%s, and %d files are left (error %v); want %q and none", out, len(entries), err, c.want)
				}
				return
			}
			spec, err := os.ReadFile(filepath.Join(folder, "mlpromote.yaml"))
			if _, missing := os.Stat(filepath.Join(folder, c.file)); errors.Join(err, missing) != nil || !strings.Contains(string(spec), c.want) {
				t.Errorf("error %v, spec %s, want %s and %q", errors.Join(err, missing), spec, c.file, c.want)
			}
			build := exec.CommandContext(t.Context(), program, "build")
			build.Dir, build.Env = folder, cmd.Env
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("the fetched bytes are not the pinned ones: %v\n%s", err, out)
			}
		})
	}
}
