package mlflow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// Limits of a model.
const (
	maxModel   = 64 << 30 // bytes of all its files
	maxDepth   = 8
	maxExample = 4 << 20 // bytes of an input example
	maxTime    = 2 * time.Hour
)

const descriptionFile = "MLmodel"

// Options are the choices of a [Fetch].
type Options struct {
	Folder  string // that the model goes to
	Replace bool   // a file of that name
	// More returns the names of further files that belong to a model's file, relative to its folder.
	More func(file string) ([]string, error)
}

// Model is a model that was fetched.
type Model struct {
	File     string // or folder, in Options.Folder
	Origin   spec.Origin
	Flavor   string
	Log      string // what to log if the file cannot be taken
	Example  string // CSV file with the rows of the input example; empty for none. [Model.Done] removes it
	Rows     int    // of Example
	Notes    []string
	others   []string // further files
	replaced bool     // files that were here before
	temp     *tempdir.Dir
}

// Done removes temporary files.
func (m Model) Done() error {
	if m.temp == nil {
		return nil
	}
	return m.temp.Remove()
}

// Discard removes the fetched files, after an error. Files that took the place of others stay.
func (m Model) Discard() error {
	if m.replaced {
		return nil
	}
	err := os.RemoveAll(m.File)
	for _, file := range m.others {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// Fetch resolves an address, and downloads the file of the model. It checks paths, sizes and digests, and leaves the format to the
// caller. Errors: CodeNotFound, CodeUnauthenticated, CodeForbidden, CodeUnavailable from the server; CodeUnsafe for pickles; CodeInvalid.
func Fetch(ctx context.Context, c *Client, r Ref, o Options) (Model, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, registry.Errorf(registry.CodeUnavailable, "MLflow server %s: the download took longer than %s", c.base.Host, maxTime))
	defer cancel()
	at, err := place(ctx, c, r)
	if err != nil {
		return Model{}, err
	}
	var text strings.Builder
	if _, err := c.download(ctx, at.root+"/"+descriptionFile, &text, maxAnswer); err != nil {
		if registry.HasCode(err, registry.CodeNotFound) {
			err = registry.WithHint(registry.Errorf(registry.CodeNotFound, "%s has no file MLmodel, so it is no model of MLflow", r), "the artifacts of the run are on its page: name the path of a logged model")
		}
		return Model{}, err
	}
	d, err := readDescription([]byte(text.String()))
	if err != nil {
		return Model{}, err
	}
	chosen, err := d.choose()
	if err != nil {
		return Model{}, err
	}
	temp, err := tempdir.In(o.Folder, ".mlflow-")
	if err != nil {
		return Model{}, err
	}
	f := fetching{client: c, at: at, options: o, temp: temp, left: maxModel, digests: make(map[string]registry.Digest)}
	m, err := f.model(ctx, chosen)
	if err == nil {
		err = f.example(ctx, d, &m)
	}
	if err == nil {
		err = f.install(&m)
	}
	if err != nil {
		return Model{}, errors.Join(err, temp.Remove())
	}
	return m, nil
}

// fetching is a download of one model.
type fetching struct {
	client  *Client
	at      placed
	options Options
	temp    *tempdir.Dir
	left    int64 // bytes that the model may still have
	digests map[string]registry.Digest
}

// listed is an entry of a folder of artifacts.
type listed struct {
	Path string `json:"path"`
	Dir  bool   `json:"is_dir"`
	Size int64  `json:"file_size"`
}

// list lists a folder of artifacts. Names are relative to it, and have no '/'.
func (f *fetching) list(ctx context.Context, folder string) ([]listed, error) {
	var answer struct {
		Files []listed `json:"files"`
	}
	if err := f.client.get(ctx, artifactsEndpoint, url.Values{"path": {path.Join(f.at.root, folder)}}, &answer); err != nil {
		return nil, err
	}
	if len(answer.Files) > maxFiles {
		return nil, registry.Errorf(registry.CodeInvalid, "folder %s has %d files: want at most %d", folder, len(answer.Files), maxFiles)
	}
	for _, e := range answer.Files {
		if !localPath(e.Path) || strings.Contains(e.Path, "/") {
			return nil, registry.Errorf(registry.CodeInvalid, "MLflow server %s: the artifact %.80q of folder %s has no plain name", f.client.base.Host, e.Path, folder)
		}
	}
	return answer.Files, nil
}

// model downloads the file or the folder of a model into the temporary folder.
func (f *fetching) model(ctx context.Context, chosen choice) (Model, error) {
	m := Model{Flavor: chosen.name, Log: chosen.log, temp: f.temp, Origin: spec.Origin{URI: f.at.ref.String(), Server: f.client.Server(), Run: f.at.run}}
	base, at := f.at.ref.base(), chosen.at
	if base == "" {
		base = "model"
	}
	if len(chosen.within) > 0 {
		var err error
		var folder bool
		if at, folder, err = f.within(ctx, chosen); err != nil {
			return Model{}, err
		}
		if folder {
			m.File = base
			if err := f.folder(ctx, at, base, "", 0); err != nil {
				return Model{}, err
			}
			m.Origin.Digest = spec.PinOf(f.digests).String()
			return m, nil
		}
	}
	end, err := chosen.end(path.Base(at))
	if err != nil {
		return Model{}, err
	}
	m.File = base + end
	if err := f.file(ctx, at, m.File, m.File); err != nil {
		return Model{}, err
	}
	if f.options.More != nil {
		more, err := f.options.More(filepath.Join(f.temp.Path, m.File))
		if err != nil {
			return Model{}, err
		}
		for _, name := range more {
			if !localPath(name) || strings.Contains(name, "/") || name == m.File {
				return Model{}, registry.Errorf(registry.CodeInvalid, "the model names a file %.80q: want a plain name", name)
			}
			if err := f.file(ctx, path.Join(path.Dir(at), name), name, name); err != nil {
				return Model{}, err
			}
			m.others = append(m.others, name)
		}
	}
	m.Origin.Digest = spec.PinOf(f.digests).String()
	return m, nil
}

// within finds the model in the folder that a flavour names. folder is true for a SavedModel.
func (f *fetching) within(ctx context.Context, chosen choice) (at string, folder bool, err error) {
	entries, err := f.list(ctx, chosen.at)
	if err != nil {
		return "", false, err
	}
	var first string
	for _, e := range entries {
		for _, name := range chosen.within {
			if !e.Dir && e.Path == name {
				return path.Join(chosen.at, name), false, nil
			}
		}
		if e.Path == "saved_model.pb" && !e.Dir {
			return chosen.at, true, nil
		}
		if e.Dir && chosen.folder != "" && e.Path == chosen.folder {
			return path.Join(chosen.at, e.Path), true, nil
		}
		if !e.Dir && strings.HasPrefix(e.Path, "model.") {
			first = e.Path
		}
	}
	if first == "" {
		return "", false, registry.WithHint(registry.Errorf(registry.CodeInvalid, "folder %s of flavor %s has no model that is read", chosen.at, chosen.name), "log the model again: %s", chosen.log)
	}
	return path.Join(chosen.at, first), false, nil
}

// folder downloads a SavedModel: the files that its reader takes.
func (f *fetching) folder(ctx context.Context, at, to, within string, depth int) error {
	if depth > maxDepth {
		return registry.Errorf(registry.CodeInvalid, "folder %s is nested too deeply: want at most %d levels", at, maxDepth)
	}
	entries, err := f.list(ctx, at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if within == "" && e.Path != "saved_model.pb" && e.Path != "variables" && e.Path != "assets" {
			continue // a fingerprint, which nothing reads
		}
		from, name := path.Join(at, e.Path), path.Join(within, e.Path)
		if e.Dir {
			err = f.folder(ctx, from, to, name, depth+1)
		} else {
			err = f.file(ctx, from, path.Join(to, name), name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file downloads a file below the temporary folder, and notes its digest under a name.
func (f *fetching) file(ctx context.Context, at, to, name string) (err error) {
	if len(f.digests) >= maxFiles {
		return registry.Errorf(registry.CodeInvalid, "the model has more than %d files", maxFiles)
	}
	file := filepath.Join(f.temp.Path, filepath.FromSlash(to))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	n, err := f.client.download(ctx, path.Join(f.at.root, at), io.MultiWriter(out, hash), f.left)
	if err != nil {
		return err
	}
	f.left -= n
	f.digests[name] = registry.Digest("sha256:" + hex.EncodeToString(hash.Sum(nil)))
	return nil
}

// install moves what was downloaded to its place.
func (f *fetching) install(m *Model) error {
	names := append([]string{m.File}, m.others...)
	for _, name := range names {
		at := filepath.Join(f.options.Folder, name)
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return err
		case !f.options.Replace || !info.Mode().IsRegular():
			return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s exists", at), "move it away, or, if it is a file that may be replaced, --force")
		default:
			m.replaced = true
		}
	}
	for i, name := range names {
		at := filepath.Join(f.options.Folder, name)
		if err := os.Rename(filepath.Join(f.temp.Path, name), at); err != nil {
			return err
		}
		names[i] = at
	}
	m.File, m.others = names[0], names[1:]
	return nil
}

// noCases is the end of each note on an example that cannot be used.
const noCases = "; give cases of your own: --cases FILE"

// example fetches the input that was logged with the model, and writes it as a table of cases if it is one.
func (f *fetching) example(ctx context.Context, d description, m *Model) error {
	e := d.example
	if e.path == "" {
		text := "the model was logged without an input example"
		if d.hasInput {
			text += ", and its signature has no values"
		}
		m.Notes = append(m.Notes, text+", so cases are generated unless you give some: --cases FILE")
		return nil
	}
	if !localPath(e.path) {
		return registry.Errorf(registry.CodeInvalid, "MLmodel: the path %.80q of the input example leads out of the model", e.path)
	}
	if e.kind != "ndarray" && (e.kind != "dataframe" || e.orient != "split") {
		m.Notes = append(m.Notes, "the logged input example is no table or array ("+registry.PlainText(e.kind[:min(len(e.kind), 40)])+"), so it is not used"+noCases)
		return nil
	}
	var text bytes.Buffer
	if _, err := f.client.download(ctx, path.Join(f.at.root, e.path), &text, maxExample); err != nil {
		return err
	}
	table, err := readExample(text.Bytes(), e.kind)
	if err != nil {
		m.Notes = append(m.Notes, "the logged input example is not used: "+err.Error()+noCases)
		return nil //nolint:nilerr // an example is optional
	}
	m.Example, m.Rows = filepath.Join(f.temp.Path, "example.csv"), len(table)-1
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	return errors.Join(w.WriteAll(table), os.WriteFile(m.Example, out.Bytes(), 0o600))
}
