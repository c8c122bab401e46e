package toolchaintest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// schemaFile is the published schema of the protocol, relative to the folder of a test three
// folders below the root.
const schemaFile = "../../../docs/reference/driver.schema.json"

// CheckSchema checks a document against a definition of the published schema: request,
// response, probeResult, runResult.
func CheckSchema(t *testing.T, definition string, document []byte) {
	t.Helper()
	if err := ValidateSchema(definition, document); err != nil {
		t.Errorf("%s is no %s: %v", document, definition, err)
	}
}

// ValidateSchema does the check of [CheckSchema].
func ValidateSchema(definition string, document []byte) error {
	path, err := filepath.Abs(schemaFile)
	if err != nil {
		return err
	}
	schema, err := jsonschema.NewCompiler().Compile("file://" + path + "#/$defs/" + definition)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// CheckResponses sends requests to a program directly, and checks its responses against the
// schema: a probe, and an unknown verb.
func CheckResponses(t *testing.T, p driverproc.Program) {
	t.Helper()
	for _, verb := range []toolchain.Verb{toolchain.VerbProbe, "dance"} {
		dir := t.TempDir()
		out := filepath.Join(dir, "out")
		if err := os.Mkdir(out, 0o777); err != nil {
			t.Fatal(err)
		}
		r := driverproc.Request{
			Protocol: driverproc.Protocol, Verb: verb, ID: "7", ResponsePath: filepath.Join(dir, "response.json"), OutDir: out,
			Threads: 1, Library: p.Library, Inputs: []driverproc.RequestInput{}, Options: map[string]any{},
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		log, err := respondTo(t.Context(), p, dir, text)
		response, errRead := os.ReadFile(r.ResponsePath)
		if errRead != nil {
			t.Fatalf("%s: %v (%v): %s", verb, errRead, err, log)
		}
		var exited *exec.ExitError
		refused := errors.As(err, &exited) && exited.ExitCode() == 1
		if (verb == toolchain.VerbProbe) != (err == nil) || err != nil && !refused {
			t.Errorf("%s: %v: %s", verb, err, log)
		}
		CheckSchema(t, "response", response)
		var answered driverproc.Response
		if err := json.Unmarshal(response, &answered); err != nil {
			t.Fatal(err)
		}
		if verb == toolchain.VerbProbe {
			CheckSchema(t, "probeResult", answered.Result)
		} else if answered.Error == nil || answered.Error.Code != driverproc.BadInput {
			t.Errorf("%s: %+v, want %s", verb, answered.Error, driverproc.BadInput)
		}
	}
}

// respondTo starts the program with a request and returns its output.
func respondTo(ctx context.Context, p driverproc.Program, dir string, request []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.Path)
	cmd.Args, cmd.Dir, cmd.Stdin = p.Args, dir, bytes.NewReader(request)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir}
	return cmd.CombinedOutput()
}
