package artifact_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

const plainTarget = `{"v":1,"name":"linux-amd64-v3","os":"linux","cpu":{"arch":"amd64","level":"v3"}}`

// plainNode meets plainTarget.
func plainNode() artifact.Node {
	return artifact.Node{V: 1, OS: "linux", CPU: artifact.NodeCPU{Arch: "amd64", Level: "v4"}}
}

func TestParseTargetRoundTrip(t *testing.T) {
	t.Parallel()
	for _, target := range []artifact.Target{gpuTarget(), {V: 1, Name: "a", OS: "linux", CPU: artifact.TargetCPU{Arch: "arm64"}}} {
		written, err := registry.CanonicalJSON(target)
		if err != nil {
			t.Fatal(err)
		}
		read, err := artifact.ParseTarget(written)
		if err != nil || !reflect.DeepEqual(read, target) {
			t.Errorf("%s was read as %+v, error %v", written, read, err)
		}
	}
}

func TestUnknownKeysMatchNothing(t *testing.T) {
	t.Parallel()
	node := plainNode()
	good, err := artifact.ParseTarget([]byte(plainTarget))
	if err != nil || len(good.Match(node, node.Runtime())) != 0 {
		t.Fatalf("the plain target is refused: %v, %q", err, lines(good.Match(node, node.Runtime())))
	}
	for _, document := range []string{
		strings.Replace(plainTarget, `{`, `{"kernel":"6.1",`, 1),
		strings.Replace(plainTarget, `"level"`, `"microcode":"0x1","level"`, 1),
		strings.Replace(plainTarget, `"os"`, `"accelerator":{"vendor":"nvidia","mig":"","nvlink":true},"os"`, 1),
		strings.Replace(plainTarget, `"os"`, `"runtimes":{"cuda":{"min":"12","not":"12.5"}},"os"`, 1),
		strings.Replace(plainTarget, `"v":1`, `"v":2`, 1),
		strings.Replace(plainTarget, `"v":1`, `"v":2,"kernel":"6.1"`, 1),
		strings.Replace(plainTarget, `"v":1,`, ``, 1),
		`{"v":7}`, `{}`, `null`,
	} {
		target, err := artifact.ParseTarget([]byte(document))
		if err != nil {
			t.Errorf("%s: %v", document, err)
			continue
		}
		rich := gpuNode()
		rich.Runtimes["cuda"] = "12.4"
		for _, n := range []artifact.Node{node, rich, {}} {
			if len(target.Match(n, n.Runtime())) == 0 {
				t.Errorf("%s matches %+v", document, n)
			}
		}
	}
}

// A target that passes through JSON, as in an answer of a service, keeps what its
// reader does not know.
func TestUnknownKeysSurviveJSON(t *testing.T) {
	t.Parallel()
	document := strings.Replace(plainTarget, `"v":1`, `"v":1,"kernel":"6.1"`, 1)
	target, err := artifact.ParseTarget([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(artifact.Release{Engines: []artifact.Engine{{Target: target}}})
	if err != nil {
		t.Fatal(err)
	}
	var read artifact.Release
	if err := json.Unmarshal(written, &read); err != nil {
		t.Fatal(err)
	}
	node := plainNode()
	if got := lines(read.Engines[0].Target.Match(node, node.Runtime())); !strings.Contains(got, "kernel") {
		t.Errorf("after a trip through JSON the target lacks %q, want the key kernel named", got)
	}
}

func TestParseTargetRefuses(t *testing.T) {
	t.Parallel()
	edit := func(old, replacement string) string { return strings.Replace(plainTarget, old, replacement, 1) }
	for document, says := range map[string]string{
		"":                              "target",
		"[]":                            "target",
		plainTarget + "x":               "target",
		edit(`"v":1`, `"v":"1"`):        "target",
		edit(`linux-amd64-v3`, `Linux`): "target name",
		edit(`linux-amd64-v3`, `a..b`):  "target name",
		edit(`linux-amd64-v3`, strings.Repeat("a", 49)):                 "at most 48",
		edit(`"os":"linux"`, `"os":""`):                                 "os is missing",
		edit(`amd64","`, `","`):                                         "cpu.arch is missing",
		edit(`"level":"v3"`, `"level":"v5"`):                            "cpu.level",
		edit(`amd64","level"`, `arm64","level"`):                        "cpu.level",
		edit(`"os"`, `"stretch":"exact","os"`):                          "applies only to accelerators",
		edit(`"os"`, `"accelerator":{"vendor":"x"},"stretch":"y","os"`): "compatibility",
		edit(`"os"`, `"runtimes":{"cuda":{}},"os"`):                     "runtime cuda",
		edit(`"os"`, `"runtimes":{"cuda":{"exact":"x"}},"os"`):          "runtime cuda",
	} {
		_, err := artifact.ParseTarget([]byte(document))
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want CodeInvalid that says %q", document, err, says)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	f.Add([]byte(plainTarget))
	f.Add([]byte(`{"v":1,"name":"a","os":"linux","cpu":{"arch":"amd64"},"accelerator":{"vendor":"nvidia","mig":"","driver":{"min":"1"}},"stretch":"version-compatible","runtimes":{"a":{"exact":"1"}}}`))
	f.Add([]byte(`{"v":2,"x":[{}]}`))
	f.Add([]byte(`{"v":1,"V":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		target, err := artifact.ParseTarget(data)
		if err != nil {
			if registry.CodeOf(err) != registry.CodeInvalid {
				t.Fatalf("error %v, want CodeInvalid", err)
			}
			return
		}
		node := gpuNode()
		lacks := target.Match(node, node.Runtime())
		var plain struct{ V int }
		if json.Unmarshal(data, &plain) != nil || (plain.V != artifact.TargetVersion && len(lacks) == 0) {
			t.Fatalf("%s matches", data)
		}
		written, err := json.Marshal(target)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", data, err)
		}
		again, err := artifact.ParseTarget(written)
		if err != nil || len(again.Match(node, node.Runtime())) != len(lacks) {
			t.Fatalf("%s is written as %s, which matches otherwise: %v", data, written, err)
		}
	})
}
