package cases

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// ServedPrefix begins the names of tensors that are outputs of the user's own service. They are
// kept with the inputs of a case, and nothing is compared with them.
const ServedPrefix = "served:"

// ExpectedPrefix begins the names of tensors that are outputs of the model before it was exported, such as of its framework. A build
// compares the reference model's outputs with them.
const ExpectedPrefix = "expected:"

// IsOutput reports whether a tensor of a case is an output, of whatever computed it.
func IsOutput(name string) bool {
	return strings.HasPrefix(name, ServedPrefix) || strings.HasPrefix(name, ExpectedPrefix)
}

// Row is one case: its tensors by name, each with a leading dimension of 1.
type Row map[string]tensor.Tensor

// Sum identifies the tensors of a case that inputs selects.
func (r Row) Sum(inputs func(name string) bool) Sum {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if t := r[name]; inputs(name) {
			fmt.Fprintf(h, "%q %s %v\n", name, t.DType, t.Shape)
			h.Write(t.Data)
		}
	}
	return Sum(h.Sum(nil))
}

// Sum identifies the inputs of one case.
type Sum [sha256.Size]byte

// Bytes returns the size of the data.
func (r Row) Bytes() int64 {
	var n int64
	for _, t := range r {
		n += int64(len(t.Data))
	}
	return n
}

// Signature names the tensors of a row with type and number of dimensions. The rows of a folder have
// one signature; their sizes may differ.
func (r Row) Signature() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		parts = append(parts, fmt.Sprintf("%s %s of %s", name, r[name].DType, registry.Count(max(len(r[name].Shape)-1, 0), "dimension")))
	}
	return strings.Join(parts, ", ")
}

// shapes tells rows apart that cannot lie in one shard.
func (r Row) shapes() string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(r)) {
		text += fmt.Sprintf("%q %s %v\n", name, r[name].DType, r[name].Shape)
	}
	return text
}

// Bounds of what a Writer keeps in memory.
const (
	shardBytes  = 64 << 20
	heldInAll   = 4 * shardBytes
	shardPrefix = toolchain.RoleCases + "-"
	shardSuffix = ".safetensors"
)

// Writer writes cases to a folder as shards. Rows of one shape go to shards of at most 64 MiB. It keeps
// at most 256 MiB in memory. It is not safe for concurrent use.
type Writer struct {
	folder string
	mode   fs.FileMode // of the shards
	made   bool        // the folder is new
	next   int         // number of the next shard
	groups map[string]*rowGroup
	held   int64
	files  []string
	count  int
}

// rowGroup is rows of one shape that are still to be written.
type rowGroup struct {
	order int
	rows  []Row
	bytes int64
}

// NewWriter makes a folder, and writes the first shard with the number next. It fails if no file can be
// written there. Errors: CodeInvalid.
func NewWriter(folder string, next int) (*Writer, error) {
	return newWriter(folder, next, 0o755, 0o666)
}

// NewPrivateWriter is NewWriter for cases that are data of users: only the owner reads the shards, and the folder if
// it is new. Errors: CodeInvalid.
func NewPrivateWriter(folder string, next int) (*Writer, error) {
	return newWriter(folder, next, 0o700, 0o600)
}

func newWriter(folder string, next int, folderMode, mode fs.FileMode) (*Writer, error) {
	w := &Writer{folder: folder, mode: mode, next: next, groups: make(map[string]*rowGroup)}
	if _, err := os.Stat(folder); err != nil {
		w.made = true
	}
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "the folder for cases: %w", err)
	}
	probe, err := os.CreateTemp(folder, ".mlpromote-*")
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "the folder for cases: %w", err)
	}
	return w, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Add adds a case.
func (w *Writer) Add(row Row) error {
	key := row.shapes()
	group := w.groups[key]
	if group == nil {
		group = &rowGroup{order: len(w.groups)}
		w.groups[key] = group
	}
	size := row.Bytes()
	if len(group.rows) > 0 && group.bytes+size > shardBytes {
		if err := w.flush(group); err != nil {
			return err
		}
	}
	group.rows = append(group.rows, row)
	group.bytes += size
	w.count++
	if w.held += size; w.held <= heldInAll {
		return nil
	}
	return w.flush(slices.MaxFunc(w.inOrder(), func(a, b *rowGroup) int { return cmp.Compare(a.bytes, b.bytes) }))
}

func (w *Writer) inOrder() []*rowGroup {
	return slices.SortedFunc(maps.Values(w.groups), func(a, b *rowGroup) int { return a.order - b.order })
}

// flush writes the rows of a group as one shard.
func (w *Writer) flush(group *rowGroup) error {
	if len(group.rows) == 0 {
		return nil
	}
	shard := make(map[string]tensor.Tensor)
	for name := range group.rows[0] {
		rows := make([]tensor.Tensor, len(group.rows))
		for i, row := range group.rows {
			rows[i] = row[name]
		}
		t, err := tensor.Concat(rows...)
		if err != nil {
			return TensorError(fmt.Errorf("tensor %q: %w", name, err))
		}
		shard[name] = t
	}
	path := filepath.Join(w.folder, shardName(w.next))
	err := atomicfile.WriteFrom(path, w.mode, func(to io.Writer) error { return tensorfile.Write(to, shard, nil) })
	if err != nil {
		return err
	}
	w.files = append(w.files, path)
	w.next++
	w.held -= group.bytes
	group.rows, group.bytes = nil, 0
	return nil
}

func shardName(number int) string { return fmt.Sprintf("%s%05d%s", shardPrefix, number, shardSuffix) }

// Close writes the rest. After an error no written file remains.
func (w *Writer) Close() error {
	for _, group := range w.inOrder() {
		if err := w.flush(group); err != nil {
			w.Discard()
			return err
		}
	}
	return nil
}

// Discard removes the written files, and the folder if it is new and empty.
func (w *Writer) Discard() {
	for _, path := range w.files {
		_ = os.Remove(path)
	}
	if w.made {
		_ = os.Remove(w.folder)
	}
	w.files, w.count = nil, 0
}

// Files returns the shards that were written.
func (w *Writer) Files() []string { return slices.Clone(w.files) }

// Count returns how many cases were added.
func (w *Writer) Count() int { return w.count }
