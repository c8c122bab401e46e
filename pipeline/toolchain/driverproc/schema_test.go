package driverproc_test

import (
	"os"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// What Do sends is what the published schema says.
func TestRequestsFollowTheSchema(t *testing.T) {
	t.Parallel()
	compile := toolchaintest.Compile(t, "model.onnx", "deep/model.data")
	compile.Options = map[string]any{"level": "basic", "nested": []any{1, map[string]any{}}}
	run := toolchaintest.Compile(t, "m.onnx")
	run.Verb = toolchain.VerbRun
	run.Run = &toolchain.RunOptions{
		Engines: []toolchain.RunEngine{{ID: "m", Path: "m.onnx"}, {ID: "n", Path: "m.onnx", Load: map[string]string{"intra_op_num_threads": "2"}}}, SelectOutputs: []string{"y"},
		Rounds: 2, Warmup: 1, Order: toolchain.OrderInterleaved, Threads: 2, Level: "basic", Env: map[string]string{"OMP_DYNAMIC": "0"},
	}
	bare := run
	bare.Run = &toolchain.RunOptions{Engines: run.Run.Engines}
	for name, job := range map[string]toolchain.Job{
		"probe": {Verb: toolchain.VerbProbe}, "compile": compile, "run": run, "bare run": bare,
		"quantize": {Verb: toolchain.VerbQuantize, Inputs: compile.Inputs}, "import": {Verb: toolchain.VerbImport, Inputs: run.Inputs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := toolchaintest.Fake("record")
			if name != "probe" {
				program.Library = "/lib/libtool.so"
			}
			outcome, err := driverproc.Do(t.Context(), program, driverproc.Budget{}, job, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			request, err := os.ReadFile(outcome.Files[0].Path)
			if err != nil {
				t.Fatal(err)
			}
			toolchaintest.CheckSchema(t, "request", request)
		})
	}
}

// A driver that is written with Serve answers as the schema says.
func TestResponsesFollowTheSchema(t *testing.T) {
	t.Parallel()
	toolchaintest.CheckResponses(t, toolchaintest.Fake("tool"))
}

// The schema is no open door.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	const head = `"protocol":"mlpromote.driver/v1","id":"1"`
	const request = head + `,"response_path":"/r","out_dir":"/o","seed":0,"threads":1,"deterministic":true,"options":{}`
	for document, definition := range map[string]string{
		`{` + head + `,"ok":true}`:                                                       "",
		`{` + head + `,"ok":false}`:                                                      "response",
		`{` + head + `,"ok":true,"error":{"code":"limit","message":"no"}}`:               "response",
		`{` + head + `,"ok":false,"error":{"code":"bad luck","message":"no"}}`:           "response",
		`{` + head + `,"ok":true,"files":[{"path":"../m","size":1,"sha256":"00"}]}`:      "response",
		`{"protocol":"mlpromote.driver/v2","id":"1","ok":true}`:                          "response",
		`{` + request + `,"verb":"probe","inputs":[]}`:                                   "",
		`{` + request + `,"verb":"run","inputs":[]}`:                                     "request",
		`{` + request + `,"verb":"dance","inputs":[]}`:                                   "request",
		`{` + request + `,"verb":"probe","inputs":[],"more":1}`:                          "request",
		`{` + request + `,"verb":"probe","inputs":[{"role":"m","name":"a","path":"b"}]}`: "request",
	} {
		wrong := definition != ""
		if !wrong {
			definition = "response"
			if strings.Contains(document, "verb") {
				definition = "request"
			}
		}
		if err := toolchaintest.ValidateSchema(definition, []byte(document)); (err != nil) != wrong {
			t.Errorf("%s: %v", document, err)
		}
	}
}
