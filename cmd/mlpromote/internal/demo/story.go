package demo

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"

	"mlpromote.dev/mlpromote/examples"
	"mlpromote.dev/mlpromote/registry"
)

// step is a command of the demo.
type step struct {
	says    string                    // what it is for
	model   string                    // folder of the model that it runs in
	prepare func(folder string) error // what a person would do in that folder before; nil: nothing
	args    []string
	exit    int    // that it must end with
	stdout  string // file in that folder that stdout goes to; empty: stdout is shown
}

// Folders of models, and nodes, which has the documents of node types.
const (
	digits = "digits"
	text   = "tickets"
	iris   = "iris"
	nodes  = "nodes"
)

// story is what happens in the demo, in this order. What a page can show is in it: releases that came to prod one
// after the other, a rollback, a quarantine, a refusal, a release that waits and one without a report.
func story() []step {
	do := func(args ...string) []string { return args }
	return []step{
		{"A model that reads digits: four engines, from full precision and from int8", digits, all(take("digits"), forThisMachine), do("build"), 0, ""},
		{"Run every engine on the cases, and compare with the reference model", digits, nil, do("verify"), 0, ""},
		{"Let the release into prod", digits, nil, do("promote"), 0, ""},
		{"A model that sorts tickets by subject", text, all(take("text"), forThisMachine), do("build"), 0, ""},
		{"Verify it", text, nil, do("verify"), 0, ""},
		{"Let it into prod", text, nil, do("promote"), 0, ""},
		{"This machine is one type of node", nodes, take("bad/impossible-node"), do("node", "describe"), 0, "this.json"},
		{"Name it", nodes, nil, do("node-type", "put", "this-machine", "this.json"), 0, ""},
		{"Another type, which has another processor", nodes, nil, do("node-type", "put", "edge-arm64", "node.json"), 0, ""},
		{"The next version of digits", digits, edit("version: 1.0.0", "version: 1.1.0"), do("build"), 0, ""},
		{"Verify it against the release in prod", digits, nil, do("verify"), 0, ""},
		{"Let it into prod", digits, nil, do("promote"), 0, ""},
		{"A version whose int8 engines were calibrated with images that are normalised twice", digits,
			all(edit("version: 1.1.0", "version: 1.2.0"), takeInto("bad/broken-calibration/calibration", "calibration")), do("build"), 0, ""},
		{"They fail verification", digits, nil, do("verify", "--sensitivity", "0"), registry.ExitLimit, ""},
		{"And the release is refused", digits, nil, do("promote"), registry.ExitPolicy, ""},
		{"The release in prod is taken back as well", digits, nil,
			do("rollback", "vision/digits", "--env", "prod", "--reason", "readings of the new scanner are wrong"), 0, ""},
		{"The next version of tickets, which is verified and waits", text, edit("version: 1.0.0", "version: 1.1.0"), do("build"), 0, ""},
		{"Verify it", text, nil, do("verify"), 0, ""},
		{"The version in prod must not be used any more", text, nil,
			do("quarantine", "prod/text/tickets:1.0.0", "--reason", "the training data has names of customers"), 0, ""},
		{"A classifier of irises, without reports so far", iris, all(take("iris"), forThisMachine, onlyHere), do("build"), 0, ""},
	}
}

// all does one thing after the other.
func all(steps ...func(string) error) func(string) error {
	return func(folder string) error {
		for _, do := range steps {
			if err := do(folder); err != nil {
				return err
			}
		}
		return nil
	}
}

// take copies an example into the folder of a model.
func take(example string) func(string) error { return takeInto(example, ".") }

// takeInto copies a folder of examples over one in the folder of a model.
func takeInto(example, into string) func(string) error {
	return func(folder string) error {
		return fs.WalkDir(examples.Files, example, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			below, err := filepath.Rel(filepath.FromSlash(example), filepath.FromSlash(name))
			if err != nil {
				return err
			}
			to := filepath.Join(folder, into, below)
			if d.IsDir() {
				return os.MkdirAll(to, 0o755)
			}
			data, err := examples.Files.ReadFile(path.Clean(name))
			if err != nil {
				return err
			}
			return os.WriteFile(to, data, 0o644)
		})
	}
}

// edit replaces a text in the spec of a model. Errors: CodeInternal if it is not there.
func edit(old, wanted string) func(string) error {
	return func(folder string) error {
		file := filepath.Join(folder, "mlpromote.yaml")
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		changed := bytes.Replace(data, []byte(old), []byte(wanted), 1)
		if bytes.Equal(changed, data) {
			return registry.Errorf(registry.CodeInternal, "%s does not contain %q", file, old)
		}
		return os.WriteFile(file, changed, 0o644)
	}
}

// higherLevel is a line of a spec with a target that not every processor meets.
var higherLevel = regexp.MustCompile(`(?m)^  - linux/amd64/v3.*\n`)

// forThisMachine makes a spec build for this machine alone, unless it is one that the examples build for.
func forThisMachine(folder string) error {
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		return nil
	}
	file := filepath.Join(folder, "mlpromote.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	data = higherLevel.ReplaceAll(data, nil)
	return os.WriteFile(file, bytes.Replace(data, []byte("linux/amd64/v1"), []byte(runtime.GOOS+"/"+runtime.GOARCH), 1), 0o644)
}

// onlyHere leaves the target out that another toolchain would have to be installed for.
func onlyHere(folder string) error {
	file := filepath.Join(folder, "mlpromote.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	from, to := bytes.Index(data, []byte("  # By itself OpenVINO")), bytes.Index(data, []byte("\nlimits:"))
	if from < 0 || to < from {
		return registry.Errorf(registry.CodeInternal, "%s is not the example that the demo knows", file)
	}
	return os.WriteFile(file, append(data[:from:from], data[to:]...), 0o644)
}
