//go:build cgo

package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// maxNodeProgram is how large mlpromote-node may be, in bytes; tools/sizes.sh has the same number.
const maxNodeProgram = 30 << 20

// cmdNodeProgram puts mlpromote-node into PATH: node-program, or node-program shifted.
func cmdNodeProgram(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 0, 1)
	get := programtest.Node
	if len(args) > 0 {
		get = programtest.ShiftedNode
	}
	path, err := get()
	ts.Check(err)
	ts.Setenv("PATH", filepath.Dir(path)+string(filepath.ListSeparator)+ts.Getenv("PATH"))
}

// The program for nodes is one small file that loads nothing of the machine.
func TestNodeProgramIsSmallAndStatic(t *testing.T) {
	t.Parallel()
	path, err := programtest.Node()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxNodeProgram {
		t.Errorf("mlpromote-node is %d bytes, want at most %d", info.Size(), maxNodeProgram)
	}
	file, err := elf.Open(path)
	if err != nil {
		t.Skipf("not an ELF file on this system: %v", err)
	}
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	if err != nil || len(libraries) > 0 {
		t.Errorf("mlpromote-node loads %v (error %v), want nothing", libraries, err)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("mlpromote-node needs a dynamic linker, want a static program")
		}
	}
}

// notOnNodes matches packages that the program for nodes must not link: what builds and runs models, databases,
// object storage, and what serves. It may link validators/format: pull looks at an engine's bytes before a node loads them.
var notOnNodes = regexp.MustCompile(`^mlpromote\.dev/mlpromote/(pipeline|pipeline/(approver|cases|plan|spec)|pipeline/toolchain(/(install|drivers|driverproc|ort|script|sandbox))?` +
	`|registry/(sqlite|postgres|s3|service|server|distribution|telemetry|gc|datadir)|validators(/(accuracy|parity|percase|performance|stats|tensor))?|web)$` +
	`|^modernc\.org/|^github\.com/(jackc|yalue|aws|prometheus)/`)

func TestNodeProgramLinksLittle(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string]bool{"mlpromote-node": true, "mlpromote": false} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "mlpromote.dev/mlpromote/cmd/"+name)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for line := range strings.Lines(string(out)) {
			if path := strings.TrimSpace(line); notOnNodes.MatchString(path) {
				found = append(found, path)
			}
		}
		if allowed && len(found) > 0 {
			t.Errorf("%s links %q, want nothing that builds, stores or serves", name, found)
		}
		if !allowed && len(found) < 20 {
			t.Errorf("%s links only %q of what this test looks for: does it still name the packages?", name, found)
		}
	}
}
