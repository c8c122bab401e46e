package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

const (
	documentVersion  = 1
	maxDocumentBytes = 1 << 20
)

var runtimePattern = regexp.MustCompile(`^([a-z0-9][a-z0-9._-]*):([0-9]+(?:\.[0-9]+)*)$`)

// ParseFile reads a node document of format version 1, at most 1 MiB. Errors: CodeNotFound if
// the file does not exist; CodeInvalid, naming file and field, if it is not a valid node
// document.
func ParseFile(path string) (artifact.Node, error) {
	data, err := readDocument("node", path)
	if err != nil {
		return artifact.Node{}, err
	}
	return Parse(path, data)
}

// Parse reads a node document as ParseFile does. Errors call the file name.
func Parse(name string, data []byte) (artifact.Node, error) {
	var n artifact.Node
	err := decodeStrict(data, &n)
	if err == nil {
		n, err = check(n)
	}
	if err != nil {
		return artifact.Node{}, registry.Errorf(registry.CodeInvalid, "node file %s: %w", name, err)
	}
	return n, nil
}

// Check validates a node from another source, and returns it with sorted features. Errors:
// CodeInvalid, naming the field.
func Check(n artifact.Node) (artifact.Node, error) {
	n, err := check(n)
	if err != nil {
		return artifact.Node{}, registry.Errorf(registry.CodeInvalid, "node: %w", err)
	}
	return n, nil
}

func check(n artifact.Node) (artifact.Node, error) {
	if err := checkNode(n); err != nil {
		return artifact.Node{}, err
	}
	n.CPU.Features = slices.Compact(slices.Sorted(slices.Values(n.CPU.Features)))
	return n, nil
}

// ParseRuntime reads the value of --runtime: NAME:VERSION, such as onnxruntime:1.30.0, or the
// path of a runtime document. A path that looks like NAME:VERSION needs "./" in front. Errors:
// CodeNotFound if the file does not exist; CodeInvalid if the value is neither.
func ParseRuntime(arg string) (artifact.Runtime, error) {
	if m := runtimePattern.FindStringSubmatch(arg); m != nil {
		r := artifact.Runtime{V: documentVersion, Name: arg, Runtimes: map[string]string{m[1]: m[2]}}
		if err := checkRuntimes(r.Runtimes); err != nil {
			return artifact.Runtime{}, registry.Errorf(registry.CodeInvalid, "runtime %q: %w", arg, err)
		}
		return r, nil
	}
	data, err := readDocument("runtime", arg)
	if registry.HasCode(err, registry.CodeNotFound) {
		return artifact.Runtime{}, registry.WithHint(err, "Write NAME:VERSION, such as onnxruntime:1.30.0, or the path of a runtime file.")
	}
	if err != nil {
		return artifact.Runtime{}, err
	}
	return ParseRuntimeDocument(arg, data)
}

// ParseRuntimeDocument reads a runtime document of format version 1. Errors call the file name.
// Errors: CodeInvalid, naming file and field.
func ParseRuntimeDocument(name string, data []byte) (artifact.Runtime, error) {
	var r artifact.Runtime
	err := decodeStrict(data, &r)
	switch {
	case err != nil:
	case r.V != documentVersion:
		err = fmt.Errorf("v is %d: want %d", r.V, documentVersion)
	case !isText(r.Name) || r.Name == "":
		err = fmt.Errorf("name %q: want the name of the software, such as triton-server:26.10", r.Name)
	case len(r.Runtimes) == 0:
		err = errors.New("runtimes is empty: want at least one name with its exact version")
	default:
		err = checkRuntimes(r.Runtimes)
	}
	if err != nil {
		return artifact.Runtime{}, registry.Errorf(registry.CodeInvalid, "runtime file %s: %w", name, err)
	}
	return r, nil
}

// readDocument reads a file of at most maxDocumentBytes.
func readDocument(kind, path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, registry.Errorf(registry.CodeNotFound, "%s file %s: there is no such file", kind, path)
	}
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "%s file: %w", kind, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDocumentBytes+1))
	switch {
	case err != nil:
		return nil, registry.Errorf(registry.CodeInvalid, "%s file: %w", kind, err)
	case len(data) > maxDocumentBytes:
		return nil, registry.Errorf(registry.CodeInvalid,
			"%s file %s: more than %d bytes: want a JSON document as `mlpromote node describe` prints it", kind, path, maxDocumentBytes)
	}
	return data, nil
}

// decodeStrict decodes one JSON value. Unknown keys and trailing data are errors.
func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows the document at byte %d", d.InputOffset())
	}
	return nil
}

func checkNode(n artifact.Node) error {
	switch {
	case n.V != documentVersion:
		return fmt.Errorf("v is %d: want %d", n.V, documentVersion)
	case !isWord(n.OS):
		return fmt.Errorf("os %q: want a name such as linux", n.OS)
	case n.MemoryMiB < 0:
		return fmt.Errorf("memoryMiB is %d: want MiB, or leave it out", n.MemoryMiB)
	case !isText(n.Source):
		return fmt.Errorf("source %q: want printable text", n.Source)
	}
	if err := checkCPU(n.CPU); err != nil {
		return err
	}
	for i, a := range n.Accelerators {
		if err := checkAccelerator(a); err != nil {
			return fmt.Errorf("accelerators[%d].%w", i, err)
		}
	}
	for i, note := range n.Notes {
		if !isText(note) {
			return fmt.Errorf("notes[%d] %q: want printable text", i, note)
		}
	}
	return checkRuntimes(n.Runtimes)
}

func checkCPU(c artifact.NodeCPU) error {
	switch {
	case !isWord(c.Arch):
		return fmt.Errorf("cpu.arch %q: want a name such as amd64", c.Arch)
	case c.Level != "" && (c.Arch != "amd64" || !slices.Contains([]string{"v1", "v2", "v3", "v4"}, c.Level)):
		return fmt.Errorf("cpu.level %q: want v1, v2, v3 or v4, and only for amd64", c.Level)
	case !isText(c.Vendor):
		return fmt.Errorf("cpu.vendor %q: want printable text", c.Vendor)
	case !isText(c.Model):
		return fmt.Errorf("cpu.model %q: want printable text", c.Model)
	}
	for i, f := range c.Features {
		if !isWord(f) {
			return fmt.Errorf("cpu.features[%d] %q: want a lower-case name such as avx512_vnni", i, f)
		}
	}
	return nil
}

func checkAccelerator(a artifact.NodeAccelerator) error {
	switch {
	case !isWord(a.Vendor):
		return fmt.Errorf("vendor %q: want a name such as nvidia", a.Vendor)
	case a.Product == "" && a.Arch == "":
		return fmt.Errorf("product: want a name such as NVIDIA-H200, or arch")
	case a.Product != "" && (!productPattern.MatchString(a.Product) || strings.Contains(a.Product, " ")):
		return fmt.Errorf("product %q: want a name such as NVIDIA-H200", a.Product)
	case a.Arch != "" && !isWord(a.Arch):
		return fmt.Errorf("arch %q: want a name such as sm_90", a.Arch)
	case a.MemoryMiB < 0:
		return fmt.Errorf("memoryMiB is %d: want MiB, or leave it out", a.MemoryMiB)
	case a.MIG != "" && !profilePattern.MatchString(a.MIG):
		return fmt.Errorf("mig %q: want a profile such as 1g.18gb, or \"\" for a whole device", a.MIG)
	case a.Driver != "" && !isVersion(a.Driver):
		return fmt.Errorf("driver %q: want numbers separated by dots", a.Driver)
	}
	return nil
}

// checkRuntimes goes in the order of names, so that the same of several mistakes is always the
// one reported.
func checkRuntimes(runtimes map[string]string) error {
	names := make([]string, 0, len(runtimes))
	for name := range runtimes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !isWord(name) {
			return fmt.Errorf("runtimes: name %q: want a lower-case name such as onnxruntime", name)
		}
		if !isVersion(runtimes[name]) {
			return fmt.Errorf("runtimes.%s %q: want an exact version, numbers separated by dots", name, runtimes[name])
		}
	}
	return nil
}

// isWord reports whether s has 1 to 63 lower-case letters, digits, '.', '_' and '-', and begins
// with a letter or digit. It has no regular expression, because resolve calls it for every fact
// of every node.
func isWord(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return 0 < len(s) && len(s) <= 63
}

// isVersion reports whether s is a version that a constraint can match.
func isVersion(v string) bool {
	return len(v) <= 64 && artifact.Constraint{Exact: v}.Validate() == nil && v != ""
}

// isText reports whether s can be used in a message unchanged.
func isText(s string) bool { return printable(s) == s }
